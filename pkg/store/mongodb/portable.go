package mongodb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/store"
)

// errUnknownKind is a kind that is not in [store.Kinds].
var errUnknownKind = errors.New("mongodb: unknown kind of record")

// portableKind reads and writes the records of one kind.
type portableKind interface {
	read(ctx context.Context, s *Store, after string, limit int) ([]store.Record, error)
	write(ctx context.Context, s *Store, records []store.Record) error
}

// portable returns the implementation for a kind. A kind has the name of its collection.
func portable(kind store.Kind) (portableKind, error) {
	switch in := collection(kind); in {
	case companies:
		return mapping[companyDocument, store.CompanyRecord]{in: in, record: companyRecord, document: fromCompanyRecord}, nil
	case accessTokens:
		return mapping[accessTokenDocument, store.AccessTokenRecord]{
			in:       in,
			record:   accessTokenRecord,
			document: fromAccessTokenRecord,
		}, nil
	case applications:
		return mapping[applicationDocument, store.ApplicationRecord]{
			in:       in,
			record:   applicationRecord,
			document: fromApplicationRecord,
		}, nil
	case templates:
		return mapping[templateDocument, store.TemplateRecord]{
			in:       in,
			record:   templateRecord,
			document: fromTemplateRecord,
		}, nil
	case visitors:
		return mapping[visitorDocument, store.VisitorRecord]{in: in, record: visitorRecord, document: fromVisitorRecord}, nil
	case identities:
		return mapping[identityDocument, store.IdentityRecord]{
			in: in, record: identityRecord, document: fromIdentityRecord, complete: resolveOwners, written: writeOwners,
		}, nil
	case chats:
		return mapping[chatDocument, store.ChatRecord]{
			in: in, record: chatRecord, document: fromChatRecord, complete: writeAllGreetings,
		}, nil
	case messages:
		return mapping[messageDocument, store.MessageRecord]{in: in, record: messageRecord, document: fromMessageRecord}, nil
	case statuses:
		return mapping[statusDocument, store.StatusRecord]{in: in, record: statusRecord, document: fromStatusRecord}, nil
	case receipts:
		return mapping[receiptsDocument, store.ReceiptsRecord]{
			in:       in,
			record:   receiptsRecord,
			document: fromReceiptsRecord,
		}, nil
	case requestKeys:
		return mapping[idempotencyDocument, idempotency.Record]{
			in:       in,
			record:   idempotencyRecord,
			document: fromIdempotencyRecord,
		}, nil
	case files:
		return mapping[fileDocument, store.FileRecord]{in: in, record: fileRecord, document: fromFileRecord}, nil
	case users:
		return mapping[userDocument, store.UserRecord]{in: in, record: userRecord, document: fromUserRecord}, nil
	case audit:
		return mapping[auditDocument, store.AuditRecord]{in: in, record: auditRecord, document: fromAuditRecord}, nil
	case webhookEndpoints:
		return mapping[endpointDocument, store.WebhookEndpointRecord]{
			in:       in,
			record:   endpointRecord,
			document: fromEndpointRecord,
		}, nil
	case webhookDeliveries:
		return mapping[deliveryDocument, store.WebhookDeliveryRecord]{
			in:       in,
			record:   deliveryRecord,
			document: fromDeliveryRecord,
		}, nil
	}
	return nil, fmt.Errorf("%w: %q", errUnknownKind, kind)
}

// ReadRecords implements [store.Portable].
func (s *Store) ReadRecords(ctx context.Context, kind store.Kind, after string, limit int) ([]store.Record, error) {
	k, err := portable(kind)
	if err != nil {
		return nil, err
	}
	return k.read(ctx, s, after, limit)
}

// WriteRecords implements [store.Portable].
func (s *Store) WriteRecords(ctx context.Context, kind store.Kind, records []store.Record) error {
	k, err := portable(kind)
	if err != nil {
		return err
	}
	return k.write(ctx, s, records)
}

// CountRecords implements [store.Portable]. It counts keys in the index of _id, so its duration grows with their
// number.
func (s *Store) CountRecords(ctx context.Context, kind store.Kind) (n int64, err error) {
	if _, err := portable(kind); err != nil {
		return 0, err
	}
	if err := s.conn.check(); err != nil {
		return 0, translate(ctx, "counting "+string(kind), err)
	}
	bounded, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	every := bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: ""}}}}
	n, err = s.in(collection(kind)).CountDocuments(bounded, every, options.Count())
	return n, translate(ctx, "counting "+string(kind), err)
}

// countTimeout bounds a count, which reads one key per document.
const countTimeout = 10 * time.Minute

// mapping converts documents of a kind to records and back.
type mapping[D, R any] struct {
	in       collection
	record   func(D) (key string, r R)
	document func(R) (id string, d D)
	// completes writes interrupted by a crash, before reading; optional
	complete func(ctx context.Context, s *Store, documents []D) error
	// writes other data that belongs to the documents; optional
	written func(ctx context.Context, s *Store, documents []D) error
}

func (m mapping[D, R]) read(ctx context.Context, s *Store, after string, limit int) ([]store.Record, error) {
	documents, err := list(
		ctx, s, m.in, byIDs(store.Page{After: after, Limit: limit}), func(d D) (D, bool) { return d, true },
	)
	if err != nil {
		return nil, err
	}
	if m.complete != nil {
		if err := m.complete(ctx, s, documents); err != nil {
			return nil, err
		}
	}
	records := make([]store.Record, len(documents))
	for n, d := range documents {
		key, r := m.record(d)
		value, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("encoding a record of %s: %w", m.in, err)
		}
		records[n] = store.Record{Key: key, Value: value}
	}
	return records, nil
}

func (m mapping[D, R]) write(ctx context.Context, s *Store, records []store.Record) error {
	for some := range slices.Chunk(records, writeBatch) {
		if err := m.writeBatch(ctx, s, some); err != nil {
			return err
		}
	}
	return nil
}

// writeBatch bounds the records of one insert, so that it completes within the operation timeout.
const writeBatch = 100

func (m mapping[D, R]) writeBatch(ctx context.Context, s *Store, records []store.Record) error {
	ids, documents, all := make([]string, len(records)), make([]D, len(records)), make([]any, len(records))
	for n, record := range records {
		var r R
		if err := json.Unmarshal(record.Value, &r); err != nil {
			return fmt.Errorf("decoding the record %q of %s: %w", record.Key, m.in, err)
		}
		ids[n], documents[n] = m.document(r)
		all[n] = documents[n]
	}
	taken, err := s.insertAll(ctx, m.in, all)
	if err != nil {
		return err
	}
	for _, n := range taken {
		if err := s.put(ctx, m.in, ids[n], all[n]); err != nil {
			return err
		}
	}
	if m.written != nil {
		return m.written(ctx, s, documents)
	}
	return nil
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

func companyRecord(d companyDocument) (string, store.CompanyRecord) {
	return d.ID, store.CompanyRecord(d)
}

func fromCompanyRecord(r store.CompanyRecord) (string, companyDocument) {
	return r.ID, companyDocument(r)
}

func endpointRecord(d endpointDocument) (string, store.WebhookEndpointRecord) {
	return d.ID, store.WebhookEndpointRecordOf(d.endpoint())
}

func fromEndpointRecord(r store.WebhookEndpointRecord) (string, endpointDocument) {
	return r.ID, endpointDocument(r)
}

func deliveryRecord(d deliveryDocument) (string, store.WebhookDeliveryRecord) {
	return d.ID, store.WebhookDeliveryRecordOf(d.delivery())
}

func fromDeliveryRecord(r store.WebhookDeliveryRecord) (string, deliveryDocument) {
	return r.ID, deliveryDocument(r)
}

func accessTokenRecord(d accessTokenDocument) (string, store.AccessTokenRecord) {
	return d.Hash, store.AccessTokenRecord(d.token())
}

func fromAccessTokenRecord(r store.AccessTokenRecord) (string, accessTokenDocument) {
	return r.Hash, accessTokenDocument(r)
}

func visitorRecord(d visitorDocument) (string, store.VisitorRecord) {
	return d.ID, store.VisitorRecord(d.visitor())
}

func fromVisitorRecord(r store.VisitorRecord) (string, visitorDocument) {
	return r.ID, visitorDocument(r)
}

func identityRecord(d identityDocument) (string, store.IdentityRecord) {
	return d.Key, store.IdentityRecord(d)
}

func fromIdentityRecord(r store.IdentityRecord) (string, identityDocument) {
	return r.Key, identityDocument(r)
}

func idempotencyRecord(d idempotencyDocument) (string, idempotency.Record) {
	return d.ID, d.record()
}

func fromIdempotencyRecord(r idempotency.Record) (string, idempotencyDocument) {
	return r.ID, idempotencyDocumentOf(r)
}

func fileRecord(d fileDocument) (string, store.FileRecord) {
	d.CreatedAt, d.ExpiresAt = store.UTC(d.CreatedAt), store.UTC(d.ExpiresAt)
	return d.ID, store.FileRecord(d)
}

func fromFileRecord(r store.FileRecord) (string, fileDocument) {
	return r.ID, fileDocument(r)
}

func userRecord(d userDocument) (string, store.UserRecord) {
	return d.ID, store.UserRecord(d.user())
}

func fromUserRecord(r store.UserRecord) (string, userDocument) {
	return r.ID, userDocumentOf(account.User(r))
}

func auditRecord(d auditDocument) (string, store.AuditRecord) {
	d.At = store.UTC(d.At)
	return d.ID, store.AuditRecord(d)
}

func fromAuditRecord(r store.AuditRecord) (string, auditDocument) {
	return r.ID, auditDocument(r)
}

func applicationRecord(d applicationDocument) (string, store.ApplicationRecord) {
	r := store.ApplicationRecord{
		ID:             d.ID,
		CompanyID:      d.CompanyID,
		Provider:       d.Provider,
		BotName:        d.BotName,
		Name:           d.Name,
		WidgetConfigs:  d.WidgetConfigs,
		AllowedOrigins: d.AllowedOrigins, FileRetention: d.FileRetention, Verification: d.Verification, Support: d.Support,
	}
	if len(r.AllowedOrigins) == 0 {
		r.AllowedOrigins = nil
	}
	for _, s := range d.IdentitySecrets {
		r.IdentitySecrets = append(r.IdentitySecrets, store.IdentitySecretRecord{
			Value: s.Value, CreatedAt: store.UTC(s.CreatedAt), ExpiresAt: store.UTC(s.ExpiresAt),
		})
	}
	return d.ID, r
}

func fromApplicationRecord(r store.ApplicationRecord) (string, applicationDocument) {
	d := applicationDocument{
		ID:             r.ID,
		CompanyID:      r.CompanyID,
		Provider:       r.Provider,
		BotName:        r.BotName,
		Name:           r.Name,
		WidgetConfigs:  r.WidgetConfigs,
		AllowedOrigins: r.AllowedOrigins, FileRetention: r.FileRetention, Verification: r.Verification, Support: r.Support,
	}
	for _, s := range r.IdentitySecrets {
		d.IdentitySecrets = append(d.IdentitySecrets, identitySecretDocument(s))
	}
	d.SecretsRevision = len(d.IdentitySecrets)
	return r.ID, d
}

func templateRecord(d templateDocument) (string, store.TemplateRecord) {
	r := store.TemplateRecord{ID: d.ID, CompanyID: d.CompanyID, Name: d.Name, Status: d.Status, Text: d.Text}
	for _, p := range d.Parameters {
		r.Parameters = append(r.Parameters, store.TemplateParameterRecord(p))
	}
	return d.ID, r
}

func fromTemplateRecord(r store.TemplateRecord) (string, templateDocument) {
	d := templateDocument{ID: r.ID, CompanyID: r.CompanyID, Name: r.Name, Status: r.Status, Text: r.Text}
	for _, p := range r.Parameters {
		d.Parameters = append(d.Parameters, templateParameterDocument(p))
	}
	return r.ID, d
}

func chatRecord(d chatDocument) (string, store.ChatRecord) {
	control := d.Control.control()
	return d.ID, store.ChatRecord{
		ID: d.ID, CompanyID: d.CompanyID, AppID: d.AppID, ChatUserID: d.ChatUserID, Channel: string(d.Channel),
		CreatedAt: store.UTC(d.CreatedAt), WindowStartedAt: store.UTC(d.WindowStartedAt),
		VisitorWroteAt: store.UTC(d.VisitorWroteAt), ClosedAt: store.UTC(d.ClosedAt),
		AgentInControl:   control.Agent,
		Assignee:         control.Assignee,
		ControlChangedAt: control.ChangedAt,
		AgentsReadAt:     store.UTC(d.AgentsReadAt),
		HandoverBy:       control.Handover.By,
		HandoverReason:   control.Handover.Reason,
		HandoverNote:     control.Handover.Note,
		HandoverAt:       control.Handover.At,
		RatingScore:      d.rating().Score,
		RatingComment:    d.rating().Comment,
		RatingFirstAt:    d.rating().FirstAt,
		RatingAt:         d.rating().At,
	}
}

func fromChatRecord(r store.ChatRecord) (string, chatDocument) {
	d := chatDocument{
		ID: r.ID, CompanyID: r.CompanyID, AppID: r.AppID, ChatUserID: r.ChatUserID, Channel: chat.Channel(r.Channel),
		CreatedAt: r.CreatedAt, WindowStartedAt: r.WindowStartedAt, VisitorWroteAt: r.VisitorWroteAt, ClosedAt: r.ClosedAt,
		AgentsReadAt: r.AgentsReadAt,
	}
	if !r.ControlChangedAt.IsZero() {
		d.Control = controlDocumentOf(chat.Control{
			Agent: r.AgentInControl, Assignee: r.Assignee, ChangedAt: r.ControlChangedAt,
			Handover: chat.Handover{By: r.HandoverBy, Reason: r.HandoverReason, Note: r.HandoverNote, At: r.HandoverAt},
		})
	}
	if r.RatingScore != 0 {
		d.Rating, d.RatedAt = &ratingDocument{Score: r.RatingScore, Comment: r.RatingComment, At: r.RatingAt}, r.RatingFirstAt
	}
	return r.ID, d
}

func messageRecord(d messageDocument) (string, store.MessageRecord) {
	return d.ID, store.MessageRecord{
		ID: d.ID, ChatID: d.ChatID, CreatedAt: store.UTC(d.CreatedAt), Type: d.Type, Data: d.Data,
		NameOfSender: d.NameOfSender, IsFromSupport: d.IsFromSupport,
	}
}

func fromMessageRecord(r store.MessageRecord) (string, messageDocument) {
	return r.ID, messageDocumentOf(r.ChatID, chat.Message{
		ID: r.ID, CreatedAt: r.CreatedAt, Type: chat.MessageType(r.Type), Data: json.RawMessage(r.Data),
		NameOfSender: r.NameOfSender, IsFromSupport: r.IsFromSupport,
	})
}

func statusRecord(d statusDocument) (string, store.StatusRecord) {
	known := d.status()
	return d.ID, store.StatusRecord{
		CompanyID:   d.CompanyID,
		MessageID:   d.MessageID,
		ChatID:      d.ChatID,
		AcceptedAt:  known.AcceptedAt,
		StoredAt:    known.StoredAt,
		DeliveredAt: known.DeliveredAt, ReadAt: known.ReadAt, FailedAt: known.Failure.At, FailureReason: known.Failure.Reason,
	}
}

func fromStatusRecord(r store.StatusRecord) (string, statusDocument) {
	d := statusDocumentOf(r.CompanyID, r.MessageID, chat.MessageStatus{
		ChatID: r.ChatID, AcceptedAt: r.AcceptedAt, StoredAt: r.StoredAt, DeliveredAt: r.DeliveredAt, ReadAt: r.ReadAt,
		Failure: chat.Failure{At: r.FailedAt, Reason: r.FailureReason},
	})
	return d.ID, d
}

func receiptsRecord(d receiptsDocument) (string, store.ReceiptsRecord) {
	r := store.ReceiptsRecord{ChatID: d.ID, Undelivered: awaited(d.Undelivered), Unread: awaited(d.Unread)}
	if d.ReadUpTo != nil {
		cursor := cursorOf(d.ReadUpTo.Order)
		r.ReadUpTo, r.ReadAt = store.MessagePosition{
			CreatedAt: cursor.At,
			MessageID: cursor.MessageID,
		}, store.UTC(
			d.ReadUpTo.At,
		)
	}
	return d.ID, r
}

func awaited(fields map[string]time.Time) (all []store.AwaitedReceipt) {
	for field, at := range fields {
		all = append(all, store.AwaitedReceipt{MessageID: idOf(field), CreatedAt: store.UTC(at)})
	}
	slices.SortFunc(all, func(a, b store.AwaitedReceipt) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.MessageID, b.MessageID))
	})
	return all
}

func fromReceiptsRecord(r store.ReceiptsRecord) (string, receiptsDocument) {
	d := receiptsDocument{ID: r.ChatID, Undelivered: awaitedFields(r.Undelivered), Unread: awaitedFields(r.Unread)}
	if r.ReadUpTo != (store.MessagePosition{}) {
		d.ReadUpTo = &readDocument{Order: orderOf(r.ReadUpTo.CreatedAt, r.ReadUpTo.MessageID), At: r.ReadAt}
	}
	return r.ChatID, d
}

func awaitedFields(all []store.AwaitedReceipt) map[string]time.Time {
	fields := make(map[string]time.Time, len(all))
	for _, a := range all {
		fields[fieldName(a.MessageID)] = store.UTC(a.CreatedAt)
	}
	return fields
}
