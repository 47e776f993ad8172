// Package placement tells whether the pods of a node could run elsewhere if the node went, as far as the objects of the API decide
// that without Karpenter's provider.
//
// There are two questions, and each errs to its own side. The proof that a pod fits on no other node counts only checks that cannot
// be wrong, and leaves out of a node's use what may be gone in a moment: where it errs, the pod fits. The plan puts all pods onto
// other nodes as Karpenter would, and gives up where anything that it does not compute could spoil it: where it errs, they do not
// fit. Between the two the answer is that it is not known.
//
// Start at New and Planner.Of. The checks of a pod on a node and their order are those of
// pkg/controllers/provisioning/scheduling/existingnode.go:CanAdd of sigs.k8s.io/karpenter v1.14.3.
package placement
