package cli

import "github.com/spf13/cobra"

// addNamespaceFlag adds kubectl's -n, in kubectl's words. Of kubectl's
// connection flags only this one has a meaning for a bundle. It is not taken
// from genericclioptions: that package links the Go types of every Kubernetes
// API, half a binary.
func addNamespaceFlag(cmd *cobra.Command, namespace *string) {
	cmd.Flags().StringVarP(namespace, "namespace", "n", "", "If present, the namespace scope for this CLI request")
}
