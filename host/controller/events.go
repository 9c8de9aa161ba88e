package controller

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

const (
	// reporter is what events name as the controller that they come from.
	reporter = "machineadm-manager"
	// noteLimit is the most bytes that the API server accepts as the note of an event.
	noteLimit = 1024
	// eventQueue is how many events wait to be written, and eventWriters how many are written at once.
	eventQueue, eventWriters = 1024, 8
)

// recorder writes events. That of client-go keeps each event for minutes to count repetitions, of which transitions have none, and
// has a goroutine for each: with thousands of machines at once a large part of the memory.
type recorder struct {
	client  client.Writer
	queue   chan *eventsv1.Event
	metrics *metrics
	// instance names this replica.
	instance string
}

func newRecorder(c client.Writer, m *metrics, hostname string) *recorder {
	return &recorder{client: c, queue: make(chan *eventsv1.Event, eventQueue), metrics: m, instance: reporter + "-" + hostname}
}

// record never waits: an event that finds the queue full is dropped.
func (r *recorder) record(config *bootstrap.MachineBootstrapConfig, level, reason, note string) {
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: config.Namespace, GenerateName: strings.TrimRight(config.Name[:min(len(config.Name), 57)], ".-") + "-",
		},
		EventTime: metav1.NowMicro(), ReportingController: reporter, ReportingInstance: r.instance, Action: "Reconcile",
		Type: level, Reason: reason, Note: shortened(note, noteLimit),
		Regarding: corev1.ObjectReference{
			APIVersion: bootstrap.GroupVersion().String(), Kind: bootstrap.KindMachineBootstrapConfig,
			Namespace: config.Namespace, Name: config.Name, UID: config.UID, ResourceVersion: config.ResourceVersion,
		},
	}
	select {
	case r.queue <- event:
	default:
		r.metrics.eventsDropped.Inc()
	}
}

// NeedLeaderElection returns false: every replica takes reports.
func (*recorder) NeedLeaderElection() bool { return false }

// Start writes the events until the context ends.
func (r *recorder) Start(ctx context.Context) error {
	var writers sync.WaitGroup
	for range eventWriters {
		writers.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case event := <-r.queue:
					r.write(ctx, event)
				}
			}
		})
	}
	writers.Wait()
	return nil
}

func (r *recorder) write(ctx context.Context, event *eventsv1.Event) {
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := r.client.Create(limited, event); err != nil {
		r.metrics.eventsDropped.Inc()
		ctrl.LoggerFrom(ctx).Error(err, "write an event", "namespace", event.Regarding.Namespace, "name", event.Regarding.Name, "reason", event.Reason)
	}
}
