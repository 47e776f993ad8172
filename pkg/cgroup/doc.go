// Package cgroup knows the control groups of a Kubernetes node, cgroup v2
// only: where the kubelet and the container runtime put the groups of a pod,
// what the kernel's files hold there, and what they ought to hold.
//
// Reading and parsing are apart. A [Group] is one directory of the hierarchy
// in a file system rooted at the node's own "/"; its methods are named after
// the files they read. Three things are kept distinct all the way up: a file
// that is absent or unreadable (the file system's own error, wrapped), a file
// that is empty or damaged (a [*ParseError]), and a file that lacks a key (the
// accessor's second result is false). None of them is ever a zero.
package cgroup
