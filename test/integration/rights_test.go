package main

import (
	"context"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// as is a client of a user without groups.
func (c *cluster) as(t *testing.T, user string) kubernetes.Interface {
	t.Helper()
	client, err := c.client(user)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// allowed asks the API server whether it grants the first of what a rule grants, in all namespaces.
func allowed(ctx context.Context, client kubernetes.Interface, rule rbacv1.PolicyRule) (bool, error) {
	return allowedIn(ctx, client, "", rule)
}

func allowedIn(ctx context.Context, client kubernetes.Interface, namespace string, rule rbacv1.PolicyRule) (bool, error) {
	resource, sub, _ := strings.Cut(rule.Resources[0], "/")
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Group: rule.APIGroups[0], Resource: resource, Subresource: sub, Verb: rule.Verbs[0],
		},
	}}
	if len(rule.ResourceNames) > 0 {
		review.Spec.ResourceAttributes.Name = rule.ResourceNames[0]
	}
	answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}
