package main

import (
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/disruption/scenario"
)

// places is a small cluster in which room, taints, labels, zones and limits are scarce.
type places struct {
	now        time.Time
	scenario   scenario.Scenario
	objects    scenario.Objects
	pools      []json.RawMessage
	daemonSets []appsv1.DaemonSet
	volumes    []corev1.PersistentVolume
	claims     []corev1.PersistentVolumeClaim
}

func (r random) places() *places {
	p := &places{now: time.Date(2026, 7, 14, 9, 0, 0, 0, time.UTC)}
	for _, zone := range []string{"zone-a", "zone-b"} {
		p.volume(zone)
	}
	names := []string{"default", "batch"}[:of(r, 1, 2)]
	for _, name := range names {
		p.pools = append(p.pools, r.placesPool(name))
	}
	if r.chance(0.3) {
		p.daemonSets = append(p.daemonSets, r.daemonSet())
	}
	for i := range 2 + r.Intn(4) {
		r.placesNode(p, fmt.Sprintf("n%d", i), names)
	}
	if r.chance(0.15) {
		none := intstr.FromString(of(r, "0%", "10%"))
		p.objects.PDBs = append(p.objects.PDBs, policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "budget"},
			Spec:   policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(r.Intn(2))}})
	}
	if r.chance(0.1) {
		pod := r.placesPod("pending", "")
		pod.Status.Phase = corev1.PodPending
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		p.objects.Pods = append(p.objects.Pods, pod)
	}
	return p
}

func (p *places) volume(zone string) {
	v := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "volume-" + zone}}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: zone}
	v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}}
	p.volumes = append(p.volumes, v)
	c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim-" + zone}}
	c.Spec.VolumeName = v.Name
	c.Status.Phase = corev1.ClaimBound
	p.claims = append(p.claims, c)
}

func (r random) placesPool(name string) json.RawMessage {
	template := map[string]any{"nodeClassRef": map[string]string{"group": "g", "kind": "k", "name": "default"}}
	requirements := []map[string]any{}
	if r.chance(0.3) {
		requirements = append(requirements, map[string]any{"key": corev1.LabelTopologyZone, "operator": "In", "values": []string{of(r, "zone-a", "zone-b")}})
	}
	if r.chance(0.3) {
		requirements = append(requirements, map[string]any{"key": "disk", "operator": of(r, "In", "NotIn", "Exists"), "values": []string{of(r, "ssd", "hdd")}})
		if requirements[len(requirements)-1]["operator"] == "Exists" {
			delete(requirements[len(requirements)-1], "values")
		}
	}
	template["requirements"] = requirements
	if r.chance(0.3) {
		template["taints"] = []map[string]string{{"key": of(r, "dedicated", "other"), "effect": of(r, "NoSchedule", "PreferNoSchedule", "NoExecute")}}
	}
	labels := map[string]string{}
	if r.chance(0.3) {
		labels["team"] = of(r, "x", "y")
	}
	spec := map[string]any{"disruption": map[string]any{"consolidateAfter": of(r, "0s", "30s", "2h"), "consolidationPolicy": "WhenEmptyOrUnderutilized"},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": template}}
	switch r.Intn(12) {
	case 0, 1, 2:
		spec["limits"] = map[string]string{of(r, "cpu", "memory"): of(r, "4", "8", "12", "8Gi", "16Gi", "24Gi")}
	case 3, 4, 5:
		spec["limits"] = map[string]string{"nodes": of(r, "1", "2", "3")}
	case 6:
		spec["replicas"] = 2
	}
	text, _ := json.Marshal(map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": name}, "spec": spec})
	return text
}

func (r random) daemonSet() appsv1.DaemonSet {
	d := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent", UID: "agent"}}
	d.Spec.Template.Spec = r.placesPod("", "").Spec
	d.Spec.Template.Spec.Volumes = nil
	return d
}

func (r random) placesNode(p *places, name string, pools []string) {
	s := scenario.Node{Name: name, NodePool: of(r, pools...), InstanceType: of(r, "small", "large"), Zone: of(r, "zone-a", "zone-b"), CapacityType: "on-demand", CPU: "2", Memory: "4Gi", MaxPods: of(r, "4", "110"),
		AgeSeconds: 3600, Consolidatable: "true", Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux"},
		Unmanaged: r.chance(0.2), Uninitialized: r.chance(0.1), NodeClaimDeleting: r.chance(0.07)}
	if r.chance(0.3) {
		s.LastPodEventAgo = new(of[int64](r, 10, 60, 3000))
	}
	if s.InstanceType == "large" {
		s.CPU, s.Memory = "4", "8Gi"
	}
	if r.chance(0.4) {
		s.Labels["disk"] = of(r, "ssd", "hdd")
	}
	if r.chance(0.3) {
		s.Labels["team"] = of(r, "x", "y")
	}
	one := scenario.Scenario{Nodes: []scenario.Node{s}}
	objects, err := one.Objects(p.now)
	if err != nil {
		panic(err)
	}
	node := &objects.Nodes[0]
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(s.CPU), corev1.ResourceMemory: resource.MustParse(s.Memory), corev1.ResourcePods: resource.MustParse(s.MaxPods)}
	node.Status.Capacity = node.Status.Allocatable.DeepCopy()
	for i := range objects.NodeClaims {
		objects.NodeClaims[i].Status.Allocatable, objects.NodeClaims[i].Status.Capacity = node.Status.Allocatable, node.Status.Capacity
	}
	if r.chance(0.05) {
		node.Spec.Unschedulable = true
		node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
	}
	for _, key := range []string{"dedicated", "other"} {
		if r.chance(0.2) {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: of(r, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule)})
		}
	}
	p.scenario.Nodes = append(p.scenario.Nodes, s)
	p.objects.Nodes = append(p.objects.Nodes, *node)
	p.objects.NodeClaims = append(p.objects.NodeClaims, objects.NodeClaims...)
	left := resource.MustParse(s.CPU)
	for j := range r.Intn(5) {
		pod := r.placesPod(fmt.Sprintf("%s-p%d", name, j), name)
		if left.Sub(*pod.Spec.Containers[0].Resources.Requests.Cpu()); left.Sign() < 0 {
			break
		}
		switch {
		case r.chance(0.06):
			pod.DeletionTimestamp = &metav1.Time{Time: p.now}
			pod.OwnerReferences[0].Kind = of(r, "ReplicaSet", "StatefulSet")
		case r.chance(0.04):
			pod.Status.Phase = of(r, corev1.PodSucceeded, corev1.PodFailed)
		case r.chance(0.05):
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(of(r, "50m", "1200m"))},
				Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(of(r, "50m", "1200m"))}}}}
		case r.chance(0.05):
			r.ephemeral(p, &pod)
		}
		p.objects.Pods = append(p.objects.Pods, pod)
	}
	for i := range p.daemonSets {
		if r.chance(0.5) {
			pod := r.placesPod("agent-"+name, name)
			pod.OwnerReferences[0].Kind, pod.OwnerReferences[0].Name, pod.OwnerReferences[0].UID = "DaemonSet", p.daemonSets[i].Name, p.daemonSets[i].UID
			pod.Spec = *p.daemonSets[i].Spec.Template.Spec.DeepCopy()
			pod.Spec.NodeName = name
			p.objects.Pods = append(p.objects.Pods, pod)
		}
	}
}

// ephemeral gives the pod a claim of its own, bound to a volume.
func (r random) ephemeral(p *places, pod *corev1.Pod) {
	yes := true
	pod.Spec.Volumes = []corev1.Volume{{Name: "own", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: pod.Name + "-own", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: &yes}}}}
	c.Spec.VolumeName = "volume-" + of(r, "zone-a", "zone-b")
	c.Status.Phase = corev1.ClaimBound
	p.claims = append(p.claims, c)
}

func (r random) placesPod(name, node string) corev1.Pod {
	yes := true
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": of(r, "web", "db")},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "rs", Controller: &yes}}}}
	pod.Spec.NodeName = node
	pod.Status.Phase = corev1.PodRunning
	c := corev1.Container{Name: "c"}
	c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(of(r, "100m", "300m", "700m", "1", "1500m")), corev1.ResourceMemory: resource.MustParse(of(r, "128Mi", "1Gi", "2Gi"))}
	if r.chance(0.08) {
		c.Ports = []corev1.ContainerPort{{HostPort: 8080, Protocol: corev1.ProtocolTCP, HostIP: of(r, "", "10.0.0.1", "10.0.0.2", "::")}}
	}
	pod.Spec.Containers = []corev1.Container{c}
	for _, key := range []string{"dedicated", "other"} {
		if r.chance(0.3) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
		}
	}
	r.selection(&pod)
	if r.chance(0.05) {
		pod.Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: "true"}
	}
	return pod
}

// apart keeps pods of a kind off each other.
func (r random) apart(pod *corev1.Pod) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": of(r, "web", "db")}}
	key := of(r, corev1.LabelHostname, corev1.LabelHostname, corev1.LabelTopologyZone, "team")
	if r.chance(0.5) {
		term := corev1.PodAffinityTerm{LabelSelector: selector, TopologyKey: key}
		switch r.Intn(6) {
		case 0:
			term.NamespaceSelector = &metav1.LabelSelector{}
		case 1:
			term.Namespaces = []string{of(r, "default", "other")}
		}
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
		return
	}
	c := corev1.TopologySpreadConstraint{MaxSkew: of(r, int32(1), 1, 2), TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector}
	if r.chance(0.3) {
		policy := of(r, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
		c.NodeAffinityPolicy = &policy
	}
	if r.chance(0.2) {
		policy := of(r, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
		c.NodeTaintsPolicy = &policy
	}
	if r.chance(0.2) {
		least := of(r, int32(1), 2, 3)
		c.MinDomains = &least
	}
	pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, c)
}

// selection ties some pods to nodes, and a few to each other.
func (r random) selection(pod *corev1.Pod) {
	term := func() corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: of(r, "disk", "team", corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone), Operator: of(r, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists), Values: []string{of(r, "ssd", "x", "zone-a", "zone-b")}}}}
	}
	fix := func(t corev1.NodeSelectorTerm) corev1.NodeSelectorTerm {
		if t.MatchExpressions[0].Operator == corev1.NodeSelectorOpExists {
			t.MatchExpressions[0].Values = nil
		}
		return t
	}
	same := &metav1.LabelSelector{MatchLabels: map[string]string{"app": pod.Labels["app"]}}
	if r.chance(0.3) {
		r.apart(pod)
	}
	switch r.Intn(16) {
	case 0:
		pod.Spec.NodeSelector = map[string]string{of(r, "disk", "team"): of(r, "ssd", "x")}
	case 1:
		pod.Spec.NodeSelector = map[string]string{karpenter.NodePoolLabel: of(r, "default", "batch")}
	case 2, 3:
		terms := []corev1.NodeSelectorTerm{fix(term())}
		if r.chance(0.4) {
			terms = append(terms, fix(term()))
		}
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	case 4:
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: fix(term())}}}}
	case 5:
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: same, TopologyKey: of(r, corev1.LabelHostname, corev1.LabelTopologyZone)}}}}
	case 6:
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: of(r, corev1.LabelHostname, corev1.LabelTopologyZone), WhenUnsatisfiable: of(r, corev1.DoNotSchedule, corev1.ScheduleAnyway), LabelSelector: same}}
	case 7, 8:
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim-" + of(r, "zone-a", "zone-b")}}}}
	}
}
