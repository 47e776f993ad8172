//go:build tools

// Package kwok pins kwok.
package kwok

import _ "sigs.k8s.io/kwok/cmd/kwok"
