// Package budget decides as Karpenter decides how many nodes of a pool may be disrupted: the value of a budget, the windows in
// which it holds, and the least of all budgets for a reason (pkg/apis/v1/nodepool.go). It is pure: the moment is an argument, and
// all times are UTC.
package budget
