package conformance

// CaseFormat describes the files of a case, for people.
const CaseFormat = `A directory of cases has one directory for each case. Files of a case:

  config.yaml  the document, exactly one; ${canary} becomes a random word
  root/        the tree before Apply; absent: an empty tree
  expect/      the whole tree after Apply, in which ${canary} becomes the same word; absent: the tree of root/
  expect.yaml  the expected answers; absent: the document is applied without an error
  commands/    stand-ins of the commands that the plugin runs on a live machine, such as rc-service: the check live puts them
               before all others, with root/ as the machine, whose control groups are in root/sys/fs/cgroup; they keep
               below /run/ what a service is and has read
  served       what the counterpart of a source or a key provider serves, in which ${canary} becomes the same word; only
               the user of the plugin can read these files
  README.md    for people

The document of a source (kind RemoteConfig) or a key provider (EncryptedConfig) is not applied: such a case has served/ and
neither root/ nor expect/. In its config.yaml ${dir} is the absolute path of a copy of served/, ${server} the URL
of an HTTP server of these files, and ${NAME} for what --define NAME=VALUE or Suite.Setup gives.

Fields of expect.yaml, all optional (JSON Schema: case.schema.json):

  errors   Plan and Apply (Fetch, Passphrase) refuse the document with these errors and no others, in any order: a list of
           code   InvalidConfig, Unsupported, Precondition or Retry
           field  the field path of a violation; absent: the answer names no field
           final  true for a Precondition that no other document can resolve
  facts    the facts of the error, all of them; absent: not compared
  changes  the ids of the changes of the first plan, in order; absent: not compared. A provider chooses its ids
  claims   claims of the first plan, beside others: the parts of the value by id, as in {"sysctl:kernel.panic": ["10"]}
  reboot   the latest reboot that a change of the first plan requests: None, AfterRun or BeforeNext; absent: None
  secrets  the paths of the secret fields: exactly the places of ${canary} in config.yaml
  file     the name of a file of served/ that the object or the passphrase equals; absent: not compared
  sha256   the SHA-256 of the object or the passphrase, in hexadecimal; absent: not compared
  modes    octal permissions in expect/, by path, other than 0755 for directories and programs and 0644 for other files

A directory of cases is of one provider. What every provider of a kind of machineadm answers is in contract/v1alpha1/cases,
which the check kind tries: outcomes, the fields of errors, and claims.

Version control keeps neither modes nor empty directories: directories and programs of root/ and expect/ count as 0755 and
other files as 0644, and directories without a file are not compared.

Example, a case that creates a file with a secret:

` + exampleConfig + `
` + exampleExpect + `
  expect/etc/app/token
    ${canary}
`

const (
	exampleConfig = `  config.yaml
    apiVersion: example.com/v1
    kind: Files
    metadata: {name: token}
    spec: {tokenFile: /etc/app/token, token: {value: "${canary}"}}
`
	exampleExpect = `  expect.yaml
    changes: ["file:/etc/app/token"]
    secrets: [spec.token]
    modes: {etc/app/token: "0600"}
`
)
