// Package autoscaler decides as the Cluster Autoscaler decides which nodes it
// may remove: the marks it leaves on nodes and pods, its flags, the status it
// writes, its arithmetic of utilization, and which pods hold a node. It is
// pure: API objects, text and a moment in, values out.
//
// Rules follow kubernetes/autoscaler, tag cluster-autoscaler-1.36.1; paths in
// comments are below its folder cluster-autoscaler. Node groups may override
// some flags through the cloud provider, which no API object shows.
package autoscaler
