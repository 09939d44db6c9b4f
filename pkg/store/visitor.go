package store

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/parley-chat/parley/pkg/chat"
)

type visitorDocument struct {
	ID         string `bson:"_id"`
	CompanyID  string `bson:"companyId"`
	AppID      string `bson:"appId"`
	FirstName  string `bson:"firstName,omitempty"`
	LastName   string `bson:"lastName,omitempty"`
	Email      string `bson:"email,omitempty"`
	Phone      string `bson:"phone,omitempty"`
	UserID     string `bson:"userId,omitempty"`
	VerifiedBy string `bson:"verifiedBy,omitempty"`
	ChatNumber int    `bson:"chatNumber,omitempty"`
}

// Visitor returns the visitor, or NotFound.
func (s *Store) Visitor(ctx context.Context, chatUserID string) (chat.Visitor, error) {
	d, err := get[visitorDocument](ctx, s, visitors, chatUserID)
	return chat.Visitor(d), err
}

// SaveVisitor makes the visitor or changes what is known of them: non-empty profile fields overwrite, empty ones leave what is
// there. Company, application and VerifiedBy stay those of the first time; ChatNumber is OpenChat's to move. It returns the visitor as
// now stored.
func (s *Store) SaveVisitor(ctx context.Context, v chat.Visitor) (chat.Visitor, error) {
	var d visitorDocument
	err := s.do(ctx, "saving a visitor", func(ctx context.Context) error {
		return again(func() error {
			return s.in(visitors).FindOneAndUpdate(ctx, byID(v.ID), visitorChange(v),
				options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Decode(&d)
		})
	})
	return chat.Visitor(d), err
}

func visitorChange(v chat.Visitor) bson.D {
	once := bson.D{{Key: "companyId", Value: v.CompanyID}, {Key: "appId", Value: v.AppID}}
	if v.VerifiedBy != "" {
		once = append(once, bson.E{Key: "verifiedBy", Value: v.VerifiedBy})
	}
	change := bson.D{{Key: "$setOnInsert", Value: once}}
	var known bson.D
	for _, field := range []struct{ name, value string }{
		{"firstName", v.FirstName}, {"lastName", v.LastName}, {"email", v.Email}, {"phone", v.Phone}, {"userId", v.UserID},
	} {
		if field.value != "" {
			known = append(known, bson.E{Key: field.name, Value: field.value})
		}
	}
	if len(known) > 0 { // MongoDB before version 5 refuses an empty $set
		change = append(change, bson.E{Key: "$set", Value: known})
	}
	return change
}
