// Package dedup decides whether a request is new work or a repeat of work
// that was done, is being done, or may have been done.
//
// It knows nothing of SIP2. A transaction is a scope (institution), a subject
// (patron), an object (item), optionally a sequence, and a list of byte
// strings that must be equal in a true repeat. The gate claims a transaction
// durably before its request is sent, keeps the answer after, and names in
// between who has to wait, who may be answered from memory, and who must be
// verified by a read first.
package dedup
