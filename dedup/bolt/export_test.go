package bolt

import "go.etcd.io/bbolt"

// WithPageSize sets the page size of a new file.
func (o Options) WithPageSize(n int) Options {
	o.pageSize = n
	return o
}

// WithCommit replaces the function that carries a transaction out.
func (o Options) WithCommit(fn func(*bbolt.DB, func(*bbolt.Tx) error) error) Options {
	o.commit = fn
	return o
}

// RunMarker is the path of the marker in RunDir.
func RunMarker(o Options) string { return o.memoryMarkers()[1] }
