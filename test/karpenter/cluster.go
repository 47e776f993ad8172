package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/object"
	"github.com/awslabs/operatorpkg/status"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/fake"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	nodeclaimdisruption "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/state/cost"
	"sigs.k8s.io/karpenter/pkg/test/v1alpha1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/disruption/scenario"
)

// silent is a recorder of events that keeps none.
type silent struct{}

func (silent) Publish(...events.Event) {}

// cluster is a scenario in the real code's own state, over a fake API server.
type cluster struct {
	ctx      context.Context
	clock    *clocktesting.FakeClock
	kube     client.Client
	provider *fake.CloudProvider
	state    *state.Cluster
	queue    *disruption.Queue
	prov     *provisioning.Provisioner
	cost     *cost.ClusterCost
	pools    map[string]*v1.NodePool
}

func newCluster(s *scenario.Scenario, now time.Time, pools map[string]*v1.NodePool) (*cluster, error) {
	objects, err := s.Objects(now)
	if err != nil {
		return nil, err
	}
	return startCluster(s, objects, now, pools, instanceTypes(s))
}

// startCluster brings objects of a scenario's nodes into the real code's state; more are others that its API server holds.
func startCluster(s *scenario.Scenario, objects scenario.Objects, now time.Time, pools map[string]*v1.NodePool, types []*cloudprovider.InstanceType, more ...client.Object) (*cluster, error) {
	c := &cluster{clock: clocktesting.NewFakeClock(now), provider: fake.NewCloudProvider(), pools: pools}
	gates := options.DefaultFeatureGates()
	gates.StaticCapacity = true
	c.ctx = options.ToContext(log.IntoContext(context.Background(), logr.Discard()), &options.Options{
		BatchMaxDuration: 10 * time.Second, BatchIdleDuration: time.Second, PreferencePolicy: options.PreferencePolicyRespect,
		MinValuesPolicy: options.MinValuesPolicyStrict, IgnoreDRARequests: true, FeatureGates: gates, CPURequests: 1000,
	})
	claims, err := realClaims(objects.NodeClaims)
	if err != nil {
		return nil, err
	}
	c.kube = c.apiServer(objects, claims, more...)
	c.provider.InstanceTypes = types
	c.state = state.NewCluster(c.clock, c.kube, c.provider)
	c.prov = provisioning.NewProvisioner(c.kube, silent{}, c.provider, c.state, c.clock, nil, nil)
	c.queue = disruption.NewQueue(c.kube, silent{}, c.state, c.clock, c.prov)
	c.cost = cost.NewClusterCost(c.ctx, c.provider, c.kube)
	return c, c.fill(s, claims, objects.Nodes)
}

// apiServer holds the objects, and the pools just as they were decoded: written out again, an empty list of reasons would be lost,
// which the real API server keeps.
func (c *cluster) apiServer(objects scenario.Objects, claims []*v1.NodeClaim, more ...client.Object) client.Client {
	all := slices.Clone(more)
	for _, pool := range c.pools {
		all = append(all, pool.DeepCopy())
	}
	for _, claim := range claims {
		all = append(all, claim)
	}
	for i := range objects.Nodes {
		all = append(all, &objects.Nodes[i])
	}
	for i := range objects.Pods {
		pod := &objects.Pods[i]
		if pod.DeletionTimestamp != nil {
			pod.Finalizers = []string{"test/hold"}
		}
		all = append(all, pod)
	}
	for i := range objects.PDBs {
		all = append(all, &objects.PDBs[i])
	}
	field := func(f func(client.Object) string) client.IndexerFunc {
		return func(o client.Object) []string { return []string{f(o)} }
	}
	base := fakeclient.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(all...).
		WithStatusSubresource(&v1.NodeClaim{}, &v1.NodePool{}).
		WithIndex(&corev1.Pod{}, "spec.nodeName", field(func(o client.Object) string { return o.(*corev1.Pod).Spec.NodeName })).
		WithIndex(&corev1.Node{}, "spec.providerID", field(func(o client.Object) string { return o.(*corev1.Node).Spec.ProviderID })).
		WithIndex(&v1.NodeClaim{}, "status.providerID", field(func(o client.Object) string { return o.(*v1.NodeClaim).Status.ProviderID })).
		WithIndex(&storagev1.VolumeAttachment{}, "spec.nodeName", field(func(o client.Object) string { return o.(*storagev1.VolumeAttachment).Spec.NodeName })).
		Build()
	return interceptor.NewClient(base, interceptor.Funcs{
		// The real code asks for volumes with a namespace, which an API server ignores.
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*corev1.PersistentVolume); ok {
				key.Namespace = ""
			}
			return w.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := w.List(ctx, list, opts...); err != nil {
				return err
			}
			if pools, ok := list.(*v1.NodePoolList); ok {
				for i := range pools.Items {
					pools.Items[i].Spec = c.pools[pools.Items[i].Name].DeepCopy().Spec
				}
			}
			return nil
		},
	})
}

// fill brings the objects into the real state as its informers do, NodeClaims first, and marks what the scenario marks.
func (c *cluster) fill(s *scenario.Scenario, claims []*v1.NodeClaim, nodes []corev1.Node) error {
	flags := map[string]*scenario.Node{}
	for i := range s.Nodes {
		flags[scenario.ProviderID(s.Nodes[i].Name)] = &s.Nodes[i]
	}
	for _, pool := range c.pools {
		c.cost.UpdateOfferings(c.ctx, pool, c.provider.InstanceTypes)
	}
	controller := nodeclaimdisruption.NewController(c.clock, c.kube, c.provider)
	for _, claim := range claims {
		stored := &v1.NodeClaim{}
		if err := c.kube.Get(c.ctx, client.ObjectKeyFromObject(claim), stored); err != nil {
			return err
		}
		n := flags[stored.Status.ProviderID]
		if n.Consolidatable == "" && stored.DeletionTimestamp.IsZero() {
			if _, err := controller.Reconcile(c.ctx, stored.DeepCopy()); err != nil {
				return err
			}
			if err := c.kube.Get(c.ctx, client.ObjectKeyFromObject(claim), stored); err != nil {
				return err
			}
			if n.Drifted && stored.StatusConditions().Get(v1.ConditionTypeDrifted) == nil {
				stored.StatusConditions(status.WithClock(c.clock)).SetTrueWithReason(v1.ConditionTypeDrifted, "NodePoolDrifted", "NodePoolDrifted")
			}
		}
		c.state.UpdateNodeClaim(stored)
		if err := c.cost.UpdateNodeClaim(c.ctx, stored); err != nil && c.pools[stored.Labels[v1.NodePoolLabelKey]] != nil {
			return err
		}
	}
	for i := range nodes {
		stored := &corev1.Node{}
		if err := c.kube.Get(c.ctx, client.ObjectKeyFromObject(&nodes[i]), stored); err != nil {
			return err
		}
		if err := c.state.UpdateNode(c.ctx, stored); err != nil {
			return err
		}
	}
	for id, n := range flags {
		if n.Nominated {
			c.state.NominateNodeForPod(c.ctx, id)
		}
		if n.MarkedForDeletion {
			c.state.MarkForDeletion(id)
		}
		if n.InQueue {
			c.queue.ProviderIDToCommand[id] = &disruption.Command{}
		}
	}
	return nil
}

// realClaims turns NodeClaims into the real type by way of their JSON.
func realClaims(claims []karpenter.NodeClaim) ([]*v1.NodeClaim, error) {
	class := object.GVK(&v1alpha1.TestNodeClass{})
	var out []*v1.NodeClaim
	for i := range claims {
		text, err := json.Marshal(&claims[i])
		if err != nil {
			return nil, err
		}
		claim := &v1.NodeClaim{}
		if err := json.Unmarshal(text, claim); err != nil {
			return nil, err
		}
		claim.Spec.NodeClassRef = &v1.NodeClassReference{Group: class.Group, Kind: class.Kind, Name: "default"}
		claim.UID = types.UID("uid-" + claim.Name)
		if claim.DeletionTimestamp != nil {
			claim.Finalizers = []string{v1.TerminationFinalizer}
		}
		out = append(out, claim)
	}
	return out, nil
}

// realPool decodes a NodePool and gives it what the test provider needs.
func realPool(raw json.RawMessage) (*v1.NodePool, error) {
	pool := &v1.NodePool{}
	if err := json.Unmarshal(raw, pool); err != nil {
		return nil, fmt.Errorf("decoding NodePool: %w", err)
	}
	class := object.GVK(&v1alpha1.TestNodeClass{})
	pool.TypeMeta = metav1.TypeMeta{}
	pool.UID = types.UID("uid-" + pool.Name)
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: class.Group, Kind: class.Kind, Name: "default"}
	pool.Status.Conditions = nil
	for _, condition := range []string{v1.ConditionTypeValidationSucceeded, v1.ConditionTypeNodeClassReady, status.ConditionReady} {
		pool.Status.Conditions = append(pool.Status.Conditions, status.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "ok"})
	}
	return pool, nil
}

func instanceTypes(s *scenario.Scenario) []*cloudprovider.InstanceType {
	out := []*cloudprovider.InstanceType{}
	for _, t := range s.InstanceTypes {
		var offerings []cloudprovider.Offering
		for key, price := range t.Prices {
			zone, capacity, _ := strings.Cut(key, "/")
			offerings = append(offerings, cloudprovider.Offering{
				Available: true, Price: price,
				Requirements: scheduling.NewLabelRequirements(map[string]string{v1.CapacityTypeLabelKey: capacity, corev1.LabelTopologyZone: zone}),
			})
		}
		slices.SortFunc(offerings, func(a, b cloudprovider.Offering) int {
			return strings.Compare(a.Zone()+a.CapacityType(), b.Zone()+b.CapacityType())
		})
		out = append(out, fake.NewInstanceType(t.Name, fake.WithOfferings(offerings...)))
	}
	return out
}
