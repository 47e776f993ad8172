// Package eviction knows by which rules the kubelet evicts pods (kubelet 1.34 to
// 1.37, pkg/kubelet/eviction): what it measures, in which order it would evict,
// and how it words what it did. It reads /stats/summary, decides nothing and
// knows no thresholds; those are configuration.
package eviction
