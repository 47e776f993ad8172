// Package disruption decides as Karpenter decides which nodes may be disrupted, by which of its methods and in which order, and says
// everything that stands in the way, where Karpenter stops at the first. It is pure: API objects and a moment in, values out.
//
// A Cluster is what one pass looks at. The pieces that it needs are in sub-packages: karpenter (its API, versions and words) and
// budget (how many nodes may go at once). Rules follow sigs.k8s.io/karpenter v1.14.3.
package disruption
