// Package store is the storage contract: the data that Parley stores, as types of package chat, and the guarantees of
// every store.
//
// Reading order: store.go (the contract, an interface per type), page.go (cursors and filters), rules.go (what every
// store rejects), errors.go (the sentinels), portable.go (moving a deployment between stores), cache.go.
//
// Engines are in their own packages: [github.com/parley-chat/parley/pkg/store/mongodb] for many machines,
// [github.com/parley-chat/parley/pkg/store/sqlite] for one. Package
// [github.com/parley-chat/parley/pkg/store/encrypted] around them encrypts the secrets of records, and checks
// webhook endpoints. Package storetest has the contract suite.
//
// Guarantees of every store:
//
//   - A write that returned nil is durable: it survives a kill -9 of the process and of the database server.
//   - A process reads its own writes immediately, and so does any other process that starts reading after the
//     write returned.
//   - Updates commute: they set facts, move a time forward or to its first value. A repeated or late event
//     ends in the same state.
//   - JSON that belongs to others (a message's data, widgetConfigs) comes back byte for byte.
//   - Times are UTC with milliseconds; the zero time stays zero.
//   - Errors are [apperr.Error]s: NotFound, Conflict, Invalid, or Unavailable if the database does not
//     respond within five seconds. A cancelled context returns its own error. After Unavailable a write may
//     or may not have happened; repeating it is safe.
package store
