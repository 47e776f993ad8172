// Package karpenter holds the part of Karpenter's API that disruption depends on, decoded from what the API server gives, what
// differs between its versions, and its words. The project's own module is never linked; every rule follows
// sigs.k8s.io/karpenter v1.14.3, and Rules says what other versions do differently.
package karpenter
