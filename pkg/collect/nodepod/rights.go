package nodepod

// Right is a permission in one namespace.
type Right struct {
	Verb, Resource, Subresource string
}

// String is as documentation and messages have it, "create pods/exec".
func (r Right) String() string {
	if r.Subresource != "" {
		return r.Verb + " " + r.Resource + "/" + r.Subresource
	}
	return r.Verb + " " + r.Resource
}

// Rights are those that a node pod takes in its namespace: to make it, to see it
// start, to read in it, and to take it away again.
var Rights = []Right{
	{Verb: "create", Resource: "pods"},
	{Verb: "get", Resource: "pods"},
	{Verb: "create", Resource: "pods", Subresource: "exec"},
	{Verb: "delete", Resource: "pods"},
}

// ExecRights are those that reading in a container takes in the pod's namespace.
var ExecRights = []Right{{Verb: "create", Resource: "pods", Subresource: "exec"}}

// CleanupRights are those that a search for leftovers takes.
var CleanupRights = []Right{{Verb: "list", Resource: "pods"}, {Verb: "delete", Resource: "pods"}}
