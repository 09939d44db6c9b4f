// Package store is the storage contract: what Parley keeps, in the words of package chat, and what every engine promises.
//
// Reading order: store.go (the contract, an interface by noun), page.go (cursors and filters), rules.go (what no engine may
// store), errors.go (the sentinels), portable.go (moving a deployment between engines), cache.go.
//
// Engines live in their own packages: [github.com/parley-chat/parley/pkg/store/mongodb] for many machines,
// [github.com/parley-chat/parley/pkg/store/sqlite] for one. Package storetest holds the suite that both pass.
//
// Promises of every engine:
//
//   - A write that returned nil is durable: it survives a kill -9 of the process and of the engine.
//   - A process reads its own writes at once, and so does any other process that starts reading after the write returned.
//   - Updates commute: they set facts, move a time forward or to its first value. A repeated or late event ends in the same state.
//   - JSON that belongs to others (a message's data, widgetConfigs) comes back byte for byte.
//   - Times are UTC with milliseconds; the zero time stays zero.
//   - Errors are [apperr.Error]s: NotFound, Conflict, Invalid, or Unavailable when the engine is away or does not answer within five
//     seconds. A cancelled context returns its own error. After Unavailable a write may or may not have happened; repeating it is safe.
package store
