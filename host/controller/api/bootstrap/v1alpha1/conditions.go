package v1alpha1

// The conditions of a MachineBootstrapConfig. True is good. Unknown waits for something else, and False is an input that has to
// change: a MachineHealthCheck may act on False alone.
const (
	// ConditionPluginsReady says that every object that the config refers to is there and ready.
	ConditionPluginsReady = "PluginsReady"
	// ConditionDocumentsValid says that the documents make a stream that a machine accepts.
	ConditionDocumentsValid = "DocumentsValid"
	// ConditionCertificatesAvailable says that the certificate authorities of the cluster are there, as far as the machine
	// needs them.
	ConditionCertificatesAvailable = "CertificatesAvailable"
	// ConditionDataStored says that the documents are in the object store of the config's storage. It is absent without one. Once the
	// bootstrap data is there, it is not part of Ready.
	ConditionDataStored = "DataStored"
	// ConditionDataSecretAvailable says that the Secret with the bootstrap data is there.
	ConditionDataSecretAvailable = "DataSecretAvailable"
	// ConditionInputsUpToDate says that nothing that the bootstrap data was made from has changed since. It is not part of
	// Ready.
	ConditionInputsUpToDate = "InputsUpToDate"
	// ConditionNodeIdentified is false while the node of the machine has not the provider ID by which Cluster API looks for it, and absent
	// otherwise. It is not part of Ready.
	ConditionNodeIdentified = "NodeIdentified"
	// ConditionBootstrapSucceeded says whether the machine has applied its documents, as it reports itself. It is absent if no report
	// is expected. Ready repeats it while it is False.
	ConditionBootstrapSucceeded = "BootstrapSucceeded"
	// ConditionReady is true if all others but InputsUpToDate and NodeIdentified are, and BootstrapSucceeded is not False; otherwise it
	// repeats the first that is not.
	ConditionReady = "Ready"
)

// The reasons of a condition that is Unknown.
const (
	// ReasonWaiting: another condition before it is not true.
	ReasonWaiting = "Waiting"
	// ReasonWaitingForOwner: no Machine or MachinePool refers to the config yet.
	ReasonWaitingForOwner = "WaitingForOwner"
	// ReasonWaitingForInfrastructure: the infrastructure of the cluster is not provisioned.
	ReasonWaitingForInfrastructure = "WaitingForInfrastructure"
	// ReasonWaitingForControlPlane: no control plane is initialized, or its endpoint is not there.
	ReasonWaitingForControlPlane = "WaitingForControlPlane"
	// ReasonWaitingForInitLock: another Machine initializes the control plane.
	ReasonWaitingForInitLock = "WaitingForInitLock"
	// ReasonWaitingForConnection: the API server of the cluster does not answer.
	ReasonWaitingForConnection = "WaitingForConnection"
	// ReasonWaitingForCertificates: a Secret with a certificate authority is not there.
	ReasonWaitingForCertificates = "WaitingForCertificates"
	// ReasonVersionSkew: the machine is newer than the control plane.
	ReasonVersionSkew = "VersionSkew"
	// ReasonKindNotInstalled: no resource of a kind is installed.
	ReasonKindNotInstalled = "KindNotInstalled"
	// ReasonKindNotReadable: the controller may not list the objects of a kind.
	ReasonKindNotReadable = "KindNotReadable"
	// ReasonObjectNotFound: an object that the config refers to is not there.
	ReasonObjectNotFound = "ObjectNotFound"
	// ReasonPluginNotReady: the controller of an object has not finished.
	ReasonPluginNotReady = "PluginNotReady"
	// ReasonInternalError: a request failed and is repeated.
	ReasonInternalError = "InternalError"
	// ReasonClaimNotReady: the controller of the storage has not stored the documents of the claim.
	ReasonClaimNotReady = "ClaimNotReady"
	// ReasonRetry: the object store does not answer, or asks for a pause. The call is repeated.
	ReasonRetry = "Retry"
	// ReasonRunning: the machine has fetched its documents, and has not reported an end of its run.
	ReasonRunning = "Running"
	// ReasonNoReport: the machine has neither fetched its documents nor sent a report. After the deadline the condition is False if no
	// node has come.
	ReasonNoReport = "NoReport"
)

// The reasons of a condition that is False.
const (
	// ReasonKeyNotFound: an object does not have the key that the config refers to.
	ReasonKeyNotFound = "KeyNotFound"
	// ReasonInvalidReference: a reference names something that cannot be a plugin or its template.
	ReasonInvalidReference = "InvalidReference"
	// ReasonInvalidDocument: a document is not valid.
	ReasonInvalidDocument = "InvalidDocument"
	// ReasonContradiction: a document has another value than the Machine or the Cluster.
	ReasonContradiction = "Contradiction"
	// ReasonInvalidOrder: two documents have the same name, or their order has a cycle.
	ReasonInvalidOrder = "InvalidOrder"
	// ReasonInvalidFormat: the format or its template does not work.
	ReasonInvalidFormat = "InvalidFormat"
	// ReasonTooLarge: the bootstrap data is larger than the target accepts.
	ReasonTooLarge = "TooLarge"
	// ReasonInvalidCertificates: a Secret with a certificate authority has no usable one.
	ReasonInvalidCertificates = "InvalidCertificates"
	// ReasonInvalidKubeconfig: the kubeconfig of the cluster has something with which the controller does not connect.
	ReasonInvalidKubeconfig = "InvalidKubeconfig"
	// ReasonSecretExists: the Secret that is to have the data belongs to something else.
	ReasonSecretExists = "SecretExists"
	// ReasonProviderIDDiffers: the node of a machine has not the provider ID of its Machine.
	ReasonProviderIDDiffers = "ProviderIDDiffers"
	// ReasonInputsChanged: an object has changed since the bootstrap data was made.
	ReasonInputsChanged = "InputsChanged"
	// ReasonInvalidStorage: the storage of the config cannot hold its documents.
	ReasonInvalidStorage = "InvalidStorage"
	// ReasonInvalidClaim: the claim belongs to something else, or has a result that a machine cannot use.
	ReasonInvalidClaim = "InvalidClaim"
	// ReasonFailed: a run failed without a code. Other failures have the code of their error as reason, such as
	// Precondition.
	ReasonFailed = "Failed"
)

// The reasons of a condition that is True.
const (
	// ReasonAvailable: the Secret is there.
	ReasonAvailable = "Available"
	// ReasonReady is that of objects that are ready, and of Ready.
	ReasonReady = "Ready"
	// ReasonValid is that of documents without an error.
	ReasonValid = "Valid"
	// ReasonNotNeeded is that of certificates where no document needs any.
	ReasonNotNeeded = "NotNeeded"
	// ReasonStored is that of documents that are in the object store.
	ReasonStored = "Stored"
	// ReasonRemoved is that of documents that were removed from the object store, because no machine fetches them any more.
	ReasonRemoved = "Removed"
	// ReasonUpToDate is that of inputs that have not changed.
	ReasonUpToDate = "UpToDate"
	// ReasonSucceeded: the run had no error.
	ReasonSucceeded = "Succeeded"
)

// Annotations of the Secret with the bootstrap data. With them the status can be made again after a move.
const (
	// AnnotationInputs maps each object that the data was made from to a keyed digest of its content.
	AnnotationInputs = "machineadm.cluster.x-k8s.io/inputs"
	// AnnotationTokenEpoch counts the bootstrap tokens of a MachinePool. It is absent if the data has none of ours.
	AnnotationTokenEpoch = "machineadm.cluster.x-k8s.io/token-epoch"
	// AnnotationStorage says how the documents in the Secret are served, or where they are stored: a digest of the token for them or the
	// name of their object, when they expire, and what is expected of the reports. It is absent if the documents are in the bootstrap data
	// itself.
	AnnotationStorage = "machineadm.cluster.x-k8s.io/storage"
)

// FinalizerStorage keeps a Secret with bootstrap data until its object is removed from the store. The config itself is deleted at once.
const FinalizerStorage = "machineadm.cluster.x-k8s.io/storage"
