package scenario

import "encoding/json"

// Scenario is a cluster at one moment.
type Scenario struct {
	ID            string            `json:"id,omitempty"`
	Now           string            `json:"now"` // RFC 3339
	Options       Options           `json:"options,omitzero"`
	NodePools     []json.RawMessage `json:"nodePools"` // whole karpenter.sh/v1 objects
	InstanceTypes []InstanceType    `json:"instanceTypes,omitempty"`
	Nodes         []Node            `json:"nodes,omitempty"`
	Pods          []Pod             `json:"pods,omitempty"`
	PDBs          []PDB             `json:"pdbs,omitempty"`
	// EvalNodes are numbers of nodes at which every budget is evaluated by itself.
	EvalNodes []int `json:"evalNodes,omitempty"`
}

// Options are how the scenario is to be read.
type Options struct {
	SpotToSpot       bool   `json:"spotToSpot,omitempty"`
	PreferencePolicy string `json:"preferencePolicy,omitempty"`
	Simulate         bool   `json:"simulate,omitempty"`
	NoDefaults       bool   `json:"noDefaults,omitempty"` // the pools are as stored: no defaults are to be added
}

// InstanceType is what the provider offers. Prices are dollars an hour by "zone/capacityType".
type InstanceType struct {
	Name   string             `json:"name"`
	CPU    string             `json:"cpu"`
	Memory string             `json:"memory"`
	Pods   string             `json:"pods"`
	Prices map[string]float64 `json:"prices"`
}

// Node is a node with its NodeClaim. Without any flag it is healthy, initialized and Karpenter's.
type Node struct {
	Name         string            `json:"name"`
	NodePool     string            `json:"nodePool,omitempty"`
	InstanceType string            `json:"instanceType,omitempty"`
	Zone         string            `json:"zone,omitempty"`
	CapacityType string            `json:"capacityType,omitempty"`
	CPU          string            `json:"cpu,omitempty"`
	Memory       string            `json:"memory,omitempty"`
	MaxPods      string            `json:"maxPods,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`

	Unmanaged           bool   `json:"unmanaged,omitempty"` // no NodeClaim
	NoNode              bool   `json:"noNode,omitempty"`    // a NodeClaim only
	Unregistered        bool   `json:"unregistered,omitempty"`
	Uninitialized       bool   `json:"uninitialized,omitempty"`
	Ready               string `json:"ready,omitempty"` // True (default), False, Unknown, Absent
	NodeClaimDeleting   bool   `json:"nodeClaimDeleting,omitempty"`
	MarkedForDeletion   bool   `json:"markedForDeletion,omitempty"`
	InstanceTerminating bool   `json:"instanceTerminating,omitempty"`
	Nominated           bool   `json:"nominated,omitempty"`
	InQueue             bool   `json:"inQueue,omitempty"`
	DoNotDisrupt        string `json:"doNotDisrupt,omitempty"`
	Drifted             bool   `json:"drifted,omitempty"`
	// Consolidatable is "true" or "false", or "" where the conditions are to be found out.
	Consolidatable  string `json:"consolidatable,omitempty"`
	AgeSeconds      int64  `json:"ageSeconds,omitempty"`
	LastPodEventAgo *int64 `json:"lastPodEventAgoSec,omitempty"`
	TGPSeconds      int64  `json:"terminationGracePeriodSec,omitempty"`
	ExpireAfter     string `json:"expireAfter,omitempty"`
}

// Pod is a pod on a node.
type Pod struct {
	Name               string            `json:"name"`
	Namespace          string            `json:"namespace,omitempty"` // "" is default
	Node               string            `json:"node"`
	Labels             map[string]string `json:"labels,omitempty"`
	Owner              string            `json:"owner,omitempty"` // kind; "" is ReplicaSet, or none
	Phase              string            `json:"phase,omitempty"` // "" is Running
	CPU                string            `json:"cpu,omitempty"`
	Memory             string            `json:"memory,omitempty"`
	DeletionCost       string            `json:"deletionCost,omitempty"`
	Priority           *int32            `json:"priority,omitempty"`
	DoNotDisrupt       string            `json:"doNotDisrupt,omitempty"`
	StartedAgo         *int64            `json:"startedAgoSec,omitempty"`
	Terminating        bool              `json:"terminating,omitempty"`
	ReadyFalse         bool              `json:"readyFalse,omitempty"`
	TolerateDisruption bool              `json:"tolerateDisruption,omitempty"`
	NodeSelector       map[string]string `json:"nodeSelector,omitempty"`
	HostPort           int32             `json:"hostPort,omitempty"`
	SpreadKey          string            `json:"spreadKey,omitempty"`
	SpreadSoft         bool              `json:"spreadSoft,omitempty"`
	AntiHost           bool              `json:"antiHost,omitempty"`
	AntiHostSoft       bool              `json:"antiHostSoft,omitempty"`
}

// PDB is a PodDisruptionBudget.
type PDB struct {
	Name               string            `json:"name"`
	Namespace          string            `json:"namespace,omitempty"`
	Selector           map[string]string `json:"selector"`
	DisruptionsAllowed int32             `json:"disruptionsAllowed"`
	MaxUnavailable     string            `json:"maxUnavailable,omitempty"`
	MinAvailable       string            `json:"minAvailable,omitempty"`
	AlwaysAllow        bool              `json:"alwaysAllow,omitempty"`
}
