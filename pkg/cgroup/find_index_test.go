package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// countingFS counts the folders listed.
type countingFS struct {
	fs.FS
	listed int
}

func (c *countingFS) ReadDir(name string) ([]fs.DirEntry, error) {
	c.listed++
	return fs.ReadDir(c.FS, name)
}

// Pods that are not where they should be are searched for, but not each anew.
func TestTreeSearchesOnce(t *testing.T) {
	const pods = 50
	uid := func(i int) string { return fmt.Sprintf("%08x-0000-0000-0000-000000000000", i) }
	var groups []string
	for i := range pods {
		groups = append(groups, "/kubepods/burstable/pod"+uid(i))
	}
	// A pod below the tree of another driver, from before a change of it.
	misplaced := testUID
	groups = append(groups, "/kubepods.slice/kubepods-pod"+testUID_+".slice")
	files := &countingFS{FS: groupTree(groups...)}
	tree, err := FindTree(files)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Pod(testPod(corev1.PodQOSBurstable, uid(pods))); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("absent pod: %v", err)
	}
	files.listed = 0
	for i := range pods {
		if _, err := tree.Pod(testPod(corev1.PodQOSBurstable, uid(pods+1+i))); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("absent pod: %v", err)
		}
	}
	if files.listed > 0 {
		t.Errorf("%d folders listed for pods known to be nowhere", files.listed)
	}
	got, err := tree.Pod(testPod(corev1.PodQOSBurstable, misplaced))
	if err != nil || got.QOS != corev1.PodQOSGuaranteed {
		t.Errorf("misplaced pod: %+v, %v", got.Pod, err)
	}
}
