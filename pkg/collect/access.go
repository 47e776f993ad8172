package collect

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/collect/nodepod"
)

// Access bounds how a cluster is read. Each includes those before it.
type Access string

const (
	// AccessAPI reads the API server, and kubelets through it.
	AccessAPI Access = "api"
	// AccessExec also reads, in the containers of the pods asked for, their own
	// cgroup.
	AccessExec Access = "exec"
	// AccessNode also makes a pod on each node, which reads the node's files.
	AccessNode Access = "node"
)

// denied are those of the rights that the API server says it would refuse.
// Where it does not say, the right is not among them: the attempt will tell.
func (c *Client) denied(ctx context.Context, namespace string, rights []nodepod.Right) []nodepod.Right {
	refused := make([]bool, len(rights))
	var all sync.WaitGroup
	for i, right := range rights {
		all.Go(func() {
			review := authorizationv1.SelfSubjectAccessReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: namespace, Verb: right.Verb, Resource: right.Resource, Subresource: right.Subresource,
				}},
			}
			data, err := c.send(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", nil, review)
			var answer authorizationv1.SelfSubjectAccessReview
			refused[i] = err == nil && json.Unmarshal(data, &answer) == nil && answer.Kind == review.Kind && !answer.Status.Allowed
		})
	}
	all.Wait()
	var out []nodepod.Right
	for i, right := range rights {
		if refused[i] {
			out = append(out, right)
		}
	}
	return out
}

// deniedError names the rights that are missing.
type deniedError struct {
	rights    []nodepod.Right
	namespace string
}

func (e *deniedError) Error() string {
	names := make([]string, len(e.rights))
	for i, right := range e.rights {
		names[i] = right.String()
	}
	return fmt.Sprintf("needs %s in namespace %s", strings.Join(names, ", "), e.namespace)
}
