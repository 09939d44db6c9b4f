package mongodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/store"
)

// This file copies whole records, for package transfer. The functions that convert documents are those of the
// contract's methods, in the file of the record.

// errUnknownKind is a kind that is not in [store.Kinds].
var errUnknownKind = errors.New("mongodb: unknown kind of record")

// portable reads and writes the records of one kind.
type portable interface {
	read(ctx context.Context, s *Store, after string, limit int) ([]store.Record, error)
	write(ctx context.Context, s *Store, records []store.Record) error
}

// portableOf returns the portable of a kind. A kind has the name of its collection.
func portableOf(kind store.Kind) (portable, error) {
	switch in := collection(kind); in {
	case companies:
		return kindOf(in, companyDocument.company, companyDocumentOf), nil
	case accessTokens:
		return kindOf(in, accessTokenDocument.token, accessTokenDocumentOf), nil
	case applications:
		return kindOf(in, applicationDocument.application, applicationDocumentOf), nil
	case templates:
		return kindOf(in, templateDocument.template, templateDocumentOf), nil
	case visitors:
		return kindOf(in, visitorDocument.visitor, visitorDocumentOf), nil
	case identities:
		k := kindOf(in, identityDocument.record, identityDocumentOf)
		k.complete, k.written = resolveOwners, writeOwners
		return k, nil
	case chats:
		k := kindOf(in, chatDocument.chat, chatDocumentOf)
		k.complete = writeAllGreetings
		return k, nil
	case messages:
		return kindOf(in, messageDocument.record, messageDocumentOfRecord), nil
	case statuses:
		return kindOf(in, statusDocument.record, statusDocumentOfRecord), nil
	case receipts:
		return kindOf(in, receiptsDocument.record, receiptsDocumentOf), nil
	case requestKeys:
		return kindOf(in, asIs[idempotency.Record], asIs[idempotency.Record]), nil
	case files:
		return kindOf(in, fileDocument.file, fileDocumentOf), nil
	case users:
		return kindOf(in, userDocument.user, userDocumentOf), nil
	case audit:
		return kindOf(in, auditDocument.entry, auditDocumentOf), nil
	case webhookEndpoints:
		return kindOf(in, store.WebhookEndpointRecord.Endpoint, store.WebhookEndpointRecordOf), nil
	case webhookDeliveries:
		return kindOf(in, store.WebhookDeliveryRecord.Delivery, store.WebhookDeliveryRecordOf), nil
	case botSettings:
		return kindOf(in, store.SettingRecord.Bot, store.BotRecordOf), nil
	case modelConnections:
		return kindOf(in, store.SettingRecord.Connection, store.ConnectionRecordOf), nil
	case knowledgeDocuments:
		k := kindOf(in, knowledgeDocument.document, knowledgeDocumentOf)
		k.prepare, k.written = writeCut, deleteCutBefore
		return k, nil
	case knowledgeSettings:
		return kindOf(in, store.KnowledgeRecord.Knowledge, store.KnowledgeRecordOf), nil
	}
	return nil, fmt.Errorf("%w: %q", errUnknownKind, kind)
}

// ReadRecords implements [store.Portable].
func (s *Store) ReadRecords(ctx context.Context, kind store.Kind, after string, limit int) ([]store.Record, error) {
	p, err := portableOf(kind)
	if err != nil {
		return nil, err
	}
	return p.read(ctx, s, after, limit)
}

// WriteRecords implements [store.Portable].
func (s *Store) WriteRecords(ctx context.Context, kind store.Kind, records []store.Record) error {
	p, err := portableOf(kind)
	if err != nil {
		return err
	}
	batch := writeBatch
	if collection(kind) == knowledgeDocuments {
		batch = documentBatch
	}
	for some := range slices.Chunk(records, batch) {
		if err := p.write(ctx, s, some); err != nil {
			return err
		}
	}
	return nil
}

// writeBatch bounds the records of one insert, so that it completes within the operation timeout.
const writeBatch = 100

// documentBatch is the same for documents, which have up to a mebibyte each.
const documentBatch = 10

// documentKind converts documents (D) of a collection to values of the contract (V), and back.
type documentKind[D, V any] struct {
	in         collection
	valueOf    func(D) V
	documentOf func(V) D
	// complete finishes writes that a crash has interrupted, before the documents are converted; optional
	complete func(ctx context.Context, s *Store, documents []D) error
	// prepare writes what must exist before the documents; optional
	prepare func(ctx context.Context, s *Store, documents []D) error
	// written writes what else belongs to the documents; optional
	written func(ctx context.Context, s *Store, documents []D) error
}

func kindOf[D, V any](in collection, valueOf func(D) V, documentOf func(V) D) documentKind[D, V] {
	return documentKind[D, V]{in: in, valueOf: valueOf, documentOf: documentOf}
}

// asIs converts a document that is the value of the contract itself.
func asIs[V any](v V) V { return v }

func (k documentKind[D, V]) read(ctx context.Context, s *Store, after string, limit int) ([]store.Record, error) {
	page := byIDs(store.Page{After: after, Limit: limit})
	found, err := list(ctx, s, k.in, page, func(d bson.Raw) (bson.Raw, bool) { return d, true })
	if err != nil {
		return nil, err
	}
	documents := make([]D, len(found))
	for n, raw := range found {
		if err := bson.Unmarshal(raw, &documents[n]); err != nil {
			return nil, fmt.Errorf("decoding a document of %s: %w", k.in, err)
		}
	}
	if k.complete != nil {
		if err := k.complete(ctx, s, documents); err != nil {
			return nil, err
		}
	}
	records := make([]store.Record, len(found))
	for n, raw := range found {
		records[n] = store.Record{Key: raw.Lookup("_id").StringValue(), Value: k.valueOf(documents[n])}
	}
	return records, nil
}

// write inserts documents, and replaces those that exist.
func (k documentKind[D, V]) write(ctx context.Context, s *Store, records []store.Record) error {
	documents := make([]D, len(records))
	inserted := make([]any, len(records))
	for n, r := range records {
		v, ok := r.Value.(V)
		if !ok {
			return fmt.Errorf("mongodb: a record of %s is a %T", k.in, r.Value)
		}
		documents[n] = k.documentOf(v)
		inserted[n] = documents[n]
	}
	if k.prepare != nil {
		if err := k.prepare(ctx, s, documents); err != nil {
			return err
		}
	}
	taken, err := s.insertAll(ctx, k.in, inserted)
	if err != nil {
		return err
	}
	for _, n := range taken {
		if err := s.put(ctx, k.in, records[n].Key, documents[n]); err != nil {
			return err
		}
	}
	if k.written == nil {
		return nil
	}
	return k.written(ctx, s, documents)
}

// resolveOwners replaces the owner ids of identities with visitor ids. It completes ids left pending by a crash.
func resolveOwners(ctx context.Context, s *Store, documents []identityDocument) error {
	ids := make([]string, len(documents))
	for n, d := range documents {
		ids[n] = d.ChatUserID
	}
	resolved, err := s.resolve(ctx, ids)
	if err != nil {
		return err
	}
	for n, d := range documents {
		o := resolved[d.ChatUserID]
		if o.pending {
			if o.id, _, err = s.agree(ctx, []string{d.ChatUserID}); err != nil {
				return err
			}
		}
		documents[n].ChatUserID = o.id
	}
	return nil
}

// writeOwners makes the owners of identities permanent visitor ids.
func writeOwners(ctx context.Context, s *Store, documents []identityDocument) error {
	own := map[string]bool{}
	var all []any
	for _, d := range documents {
		if !own[d.ChatUserID] {
			own[d.ChatUserID] = true
			all = append(all, ownerDocument{ID: d.ChatUserID, ResolvesTo: d.ChatUserID})
		}
	}
	_, err := s.insertAll(ctx, owners, all)
	return err
}

func writeAllGreetings(ctx context.Context, s *Store, documents []chatDocument) error {
	for _, d := range documents {
		if err := s.writeGreetings(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

func (d identityDocument) record() store.IdentityRecord { return store.IdentityRecord(d) }

func identityDocumentOf(r store.IdentityRecord) identityDocument { return identityDocument(r) }

func (d messageDocument) record() store.MessageRecord {
	return store.MessageRecord{ChatID: d.ChatID, Message: d.message()}
}

func messageDocumentOfRecord(r store.MessageRecord) messageDocument {
	return messageDocumentOf(r.ChatID, r.Message)
}

func (d statusDocument) record() store.StatusRecord {
	return store.StatusRecord{CompanyID: d.CompanyID, MessageID: d.MessageID, Status: d.status()}
}

func statusDocumentOfRecord(r store.StatusRecord) statusDocument {
	return statusDocumentOf(r.CompanyID, r.MessageID, r.Status)
}

func (d receiptsDocument) record() store.ReceiptsRecord {
	r := store.ReceiptsRecord{ChatID: d.ID, Undelivered: awaited(d.Undelivered), Unread: awaited(d.Unread)}
	if d.ReadUpTo != nil {
		r.ReadUpTo = cursorOf(d.ReadUpTo.Order)
		r.ReadAt = store.UTC(d.ReadUpTo.At)
	}
	return r
}

func awaited(fields map[string]string) (all []store.AwaitedReceipt) {
	for field, order := range fields {
		all = append(all, store.AwaitedReceipt{MessageID: idOf(field), CreatedAt: cursorOf(order).At})
	}
	slices.SortFunc(all, func(a, b store.AwaitedReceipt) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.MessageID, b.MessageID))
	})
	return all
}

func receiptsDocumentOf(r store.ReceiptsRecord) receiptsDocument {
	d := receiptsDocument{
		ID: r.ChatID, Undelivered: awaitedFields(r.Undelivered), Unread: awaitedFields(r.Unread), Awaited: len(r.Unread),
	}
	if r.ReadUpTo != (chat.ReadCursor{}) {
		d.ReadUpTo = &readDocument{Order: orderOf(r.ReadUpTo.At, r.ReadUpTo.MessageID), At: r.ReadAt}
	}
	return d
}

func awaitedFields(all []store.AwaitedReceipt) map[string]string {
	fields := make(map[string]string, len(all))
	for _, a := range all {
		fields[fieldName(a.MessageID)] = orderOf(a.CreatedAt, a.MessageID)
	}
	return fields
}
