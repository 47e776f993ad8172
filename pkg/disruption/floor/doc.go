// Package floor tells how many nodes a NodePool needs at least, as far as its present nodes and pods decide that.
//
// Every number is a lower bound: as long as the pods that are on the pool's nodes stay on its present nodes, no fewer of these hold
// them, in whatever order pods are put there. It may be less than what is really needed, never more. Nodes of other sizes may do
// with fewer, and what pods use does not matter, only what they request.
//
// Start at Of and Pool.Floors. Topology tells of a single pod which nodes others keep it off.
package floor
