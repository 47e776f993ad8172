package snapshot

// What a bundle may hold at most. Bundles come from strangers, so whoever reads
// or writes one keeps to these.
const (
	MaxEntries    = 200_000 // of an archive, or listed in a folder's tree; an archive's implied folders are counted apart
	MaxTotalBytes = 1 << 30 // of all files together
	MaxFileBytes  = 64 << 20

	maxPathBytes = 4096 // Linux's PATH_MAX

	// An archive's stream may be this much longer than its files: headers, long
	// names and padding for every entry, and blocks of zeros at the end. Without
	// it a few kilobytes could unpack to headers without end.
	entryOverhead  = 8 << 10
	streamOverhead = 2 << 20

	// What one List may hold. Lists of API servers have a comma every 30 bytes,
	// so 64 MiB of them have 2.3 million; "{},{},…" would decode to 200 times
	// its size.
	maxListItems  = MaxEntries
	maxListCommas = 3_000_000
)

// limits are the ones a test can make small.
type limits struct {
	entries    int
	totalBytes int64
	fileBytes  int64
}

func standardLimits() limits {
	return limits{entries: MaxEntries, totalBytes: MaxTotalBytes, fileBytes: MaxFileBytes}
}
