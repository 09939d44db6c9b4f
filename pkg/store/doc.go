// Package store keeps Parley's documents in MongoDB: our nouns go in, our nouns or an [apperr.Error] come out.
//
// Reading order: store.go (opening, and the one way in which every operation runs), company.go, visitor.go, chat.go,
// message.go, bucket.go, record.go and seal.go, page.go, status.go and receipt.go, claim.go, then cache.go.
//
// Invariants:
//
//   - Keys first: the filter of every operation is exactly {_id: x}. That is one index hit anywhere, one shard in a sharded
//     cluster, and one row in the embedded engine, which pushes nothing else down to its database. Only the slow sweep of
//     expired claims, for engines that expire nothing by themselves, asks for more.
//   - Updates commute: they set facts, move a field forward ($max) or backward to the first ($min), or count ($inc). None
//     depends on another field, so that redelivered or reordered events end in the same documents. Sealing a full bucket rewrites it, and has one doer.
//   - What must be unique is an _id, and inserting it decides who was first. There are no locks and no transactions, so a
//     single server without a replica set is enough.
//   - JSON that belongs to others (a message's data, widgetConfigs) is stored as text and comes back byte for byte.
//   - Times are UTC with milliseconds.
package store
