// Package alloc decides as the kubelet's resource managers decide: which containers get CPUs of their own, from which reservation and
// on which node state. It is pure: values in, values out. The pieces that it reads are in its sub-packages: cpuset, topology,
// checkpoint and kubeletconfig. The managers themselves are replayed in cpumanager, memorymanager and topologymanager, which tell each
// other hints (hint), and node ties them together as the kubelet does; trace records what decided.
//
// Rules follow kubelet 1.37; Rules holds what other versions do differently.
package alloc
