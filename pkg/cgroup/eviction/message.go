package eviction

import (
	"regexp"
	"strings"
)

// Kind is why the kubelet evicts a pod.
type Kind int

// Kinds of eviction. Unknown is a text that is none of the kubelet's.
const (
	Unknown Kind = iota
	// NodeLow: the node is short of Resource.
	NodeLow
	// NodeCondition: the pod was refused at admission because the node had
	// Conditions.
	NodeCondition
	// EmptyDirLimit: Volume holds more than its sizeLimit, Limit.
	EmptyDirLimit
	// PodStorageLimit: the pod's local storage exceeds its containers' limits,
	// together Limit.
	PodStorageLimit
	// ContainerStorageLimit: Container's local storage exceeds its own Limit.
	ContainerStorageLimit
)

// Message is what an eviction's text says; quantities are as written.
type Message struct {
	Kind Kind

	Resource string // memory, ephemeral-storage, inodes or pids
	// Threshold and Available are "" in texts that lack them.
	Threshold, Available string
	// Consumers are the pod, where it has pod-level resources, and the containers
	// that used more than they asked for.
	Consumers []Consumer

	Conditions string // "MemoryPressure DiskPressure"

	Volume, Container, Limit string
}

// Consumer is "Container app was using 500Mi, request is 100Mi".
type Consumer struct {
	Pod            bool // else a container
	Name           string
	Usage, Request string
}

var (
	lowPattern       = regexp.MustCompile(`^The node was low on resource: ([A-Za-z][A-Za-z0-9./-]*)\.`)
	thresholdPattern = regexp.MustCompile(`Threshold quantity: ([0-9A-Za-z.+-]+), available: ([0-9A-Za-z.+-]+)\.( |$)`)
	consumerPattern  = regexp.MustCompile(`(Container|Pod) ([a-z0-9][a-z0-9.-]*) was using ([0-9A-Za-z.+-]+), (?:request is|which exceeds its request of) ([0-9A-Za-z.+-]+?)(?:, has larger consumption of [A-Za-z0-9./-]+)?\.(?: |$)`)
	conditionPattern = regexp.MustCompile(`^(?:Pod was rejected: )?The node had condition: \[([A-Za-z ]+)\]\.`)
	emptyDirPattern  = regexp.MustCompile(`^Usage of EmptyDir volume "([^"]+)" exceeds the limit "([^"]+)"\.`)
	podPattern       = regexp.MustCompile(`(?i)^pod ephemeral local storage usage exceeds the total limit of containers ([0-9A-Za-z+-]+(?:\.[0-9A-Za-z+-]+)?)\.?(?: |$)`)
	containerPattern = regexp.MustCompile(`^Container ([a-z0-9][a-z0-9.-]*) exceeded its local ephemeral storage limit "([^"]+)"\.`)
)

// maxConsumers bounds what is kept of one message.
const maxConsumers = 64

// ParseMessage reads the text of an event Evicted or of the status of an evicted
// pod (kubelet 1.34 to 1.37, with older wordings).
func ParseMessage(text string) Message {
	text = text[:min(len(text), 1<<16)]
	if m := lowPattern.FindStringSubmatch(text); m != nil {
		out := Message{Kind: NodeLow, Resource: m[1]}
		if t := thresholdPattern.FindStringSubmatch(text); t != nil {
			out.Threshold, out.Available = t[1], t[2]
		}
		for _, c := range consumerPattern.FindAllStringSubmatch(text, maxConsumers) {
			out.Consumers = append(out.Consumers, Consumer{Pod: c[1] == "Pod", Name: c[2], Usage: c[3], Request: c[4]})
		}
		return out
	}
	if m := conditionPattern.FindStringSubmatch(text); m != nil {
		return Message{Kind: NodeCondition, Conditions: strings.Join(strings.Fields(m[1]), " ")}
	}
	if m := emptyDirPattern.FindStringSubmatch(text); m != nil {
		return Message{Kind: EmptyDirLimit, Volume: m[1], Limit: m[2]}
	}
	if m := podPattern.FindStringSubmatch(text); m != nil {
		return Message{Kind: PodStorageLimit, Limit: m[1]}
	}
	if m := containerPattern.FindStringSubmatch(text); m != nil {
		return Message{Kind: ContainerStorageLimit, Container: m[1], Limit: m[2]}
	}
	return Message{}
}

// Signals are the eviction signals that a shortage of the resource can come
// from, as they are configured.
func Signals(resource string) []string {
	switch resource {
	case "memory":
		return []string{"memory.available"}
	case "ephemeral-storage":
		return []string{"nodefs.available", "imagefs.available", "containerfs.available"}
	case "inodes":
		return []string{"nodefs.inodesFree", "imagefs.inodesFree", "containerfs.inodesFree"}
	case "pids":
		return []string{"pid.available"}
	}
	return nil
}

// Annotations of an event Evicted. One for a shortage of the node carries
// StarvedResource unless the kubelet had no statistics of the pod.
const (
	StarvedResource          = "starved_resource"
	OffendingContainers      = "offending_containers"
	OffendingContainersUsage = "offending_containers_usage"
)
