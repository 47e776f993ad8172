// Package scenario describes a cluster of Karpenter's nodes in one JSON object and says of it what the replay says, in one JSON object
// too, so that the replay can be compared with the real code.
package scenario
