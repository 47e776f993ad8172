// Command karpenter is Karpenter with its kwok provider. It differs from the operator that the module has for it only in where it
// listens: at loopback, with its metrics and probes, and not at every address.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/zapr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

func main() {
	ctx := injection.WithOptionsOrDie(context.Background(), options.Injectables...)
	logger := zapr.NewLogger(logging.NewLogger(ctx, "controller"))
	log.SetLogger(logger)
	klog.SetLogger(logger)
	ctx = log.IntoContext(ctx, logger)

	o, err := newOperator(ctx)
	if err != nil {
		panic(err)
	}
	types, err := kwok.ConstructInstanceTypes(ctx)
	if err != nil {
		panic(err)
	}
	plain := kwok.NewCloudProvider(ctx, o.GetClient(), types)
	provider := overlay.Decorate(plain, o.GetClient(), o.InstanceTypeStore)
	cluster := state.NewCluster(o.Clock, o.GetClient(), provider)
	o.WithControllers(ctx, controllers.NewControllers(ctx, o.Manager, o.Clock, o.GetClient(), o.EventRecorder, provider, plain, cluster, o.InstanceTypeStore)...).Start(ctx)
}

// newOperator is operator.NewOperator at loopback, for one replica.
func newOperator(ctx context.Context) (*operator.Operator, error) {
	set := options.FromContext(ctx)
	config := ctrl.GetConfigOrDie()
	config.QPS, config.Burst = float32(set.KubeClientQPS), set.KubeClientBurst
	config.UserAgent = operator.AppName
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	leases := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.namespace", corev1.NamespaceNodeLease)}
	m, err := ctrl.NewManager(config, ctrl.Options{
		Logger:                 logging.IgnoreDebugEvents(log.FromContext(ctx)),
		Metrics:                metricsserver.Options{BindAddress: fmt.Sprintf("127.0.0.1:%d", set.MetricsPort)},
		HealthProbeBindAddress: fmt.Sprintf("127.0.0.1:%d", set.HealthProbePort),
		BaseContext:            func() context.Context { return ctx },
		Cache:                  cache.Options{ByObject: map[client.Object]cache.ByObject{&coordinationv1.Lease{}: leases}},
	})
	if err != nil {
		return nil, err
	}
	if err := index(ctx, m); err != nil {
		return nil, err
	}
	synced := func(r *http.Request) error {
		if !m.GetCache().WaitForCacheSync(r.Context()) {
			return errors.New("the caches are not filled")
		}
		return nil
	}
	if err := m.AddReadyzCheck("caches", synced); err != nil {
		return nil, err
	}
	return &operator.Operator{
		Manager: m, KubernetesInterface: clients, Clock: clock.RealClock{}, InstanceTypeStore: nodeoverlay.NewInstanceTypeStore(),
		EventRecorder: events.NewRecorder(m.GetEventRecorderFor(operator.AppName)), //nolint:staticcheck // the recorder that Karpenter's takes
	}, nil
}

// index makes the fields by which Karpenter's controllers list.
func index(ctx context.Context, m manager.Manager) error {
	for _, of := range []struct {
		object client.Object
		field  string
		value  func(client.Object) string
	}{
		{&corev1.Pod{}, "spec.nodeName", func(o client.Object) string { return o.(*corev1.Pod).Spec.NodeName }},
		{&corev1.Node{}, "spec.providerID", func(o client.Object) string { return o.(*corev1.Node).Spec.ProviderID }},
		{&storagev1.VolumeAttachment{}, "spec.nodeName", func(o client.Object) string { return o.(*storagev1.VolumeAttachment).Spec.NodeName }},
		{&v1.NodeClaim{}, "status.providerID", func(o client.Object) string { return o.(*v1.NodeClaim).Status.ProviderID }},
		{&v1.NodeClaim{}, "spec.nodeClassRef.group", func(o client.Object) string { return o.(*v1.NodeClaim).Spec.NodeClassRef.Group }},
		{&v1.NodeClaim{}, "spec.nodeClassRef.kind", func(o client.Object) string { return o.(*v1.NodeClaim).Spec.NodeClassRef.Kind }},
		{&v1.NodeClaim{}, "spec.nodeClassRef.name", func(o client.Object) string { return o.(*v1.NodeClaim).Spec.NodeClassRef.Name }},
		{&v1.NodePool{}, "spec.template.spec.nodeClassRef.group", func(o client.Object) string { return o.(*v1.NodePool).Spec.Template.Spec.NodeClassRef.Group }},
		{&v1.NodePool{}, "spec.template.spec.nodeClassRef.kind", func(o client.Object) string { return o.(*v1.NodePool).Spec.Template.Spec.NodeClassRef.Kind }},
		{&v1.NodePool{}, "spec.template.spec.nodeClassRef.name", func(o client.Object) string { return o.(*v1.NodePool).Spec.Template.Spec.NodeClassRef.Name }},
	} {
		err := m.GetFieldIndexer().IndexField(ctx, of.object, of.field, func(o client.Object) []string { return []string{of.value(o)} })
		if err != nil {
			return fmt.Errorf("%T by %s: %w", of.object, of.field, err)
		}
	}
	return nil
}
