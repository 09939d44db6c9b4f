// Creates a database user for each service that uses MongoDB. It runs once, as the root user, when the data directory is created.
//
// A service may do with each collection what its code does, and nothing else: TestRoles of testkit/engines/mongodb compares this table,
// which is JSON, with the code. The operator creates indexes, migrates and restores, so it may read and write all of it.
const roles = {
  "client-api": {
    "accessTokens": ["find", "update"],
    "applications": ["find"],
    "audit": ["insert"],
    "chats": ["find", "insert", "update"],
    "idempotency": ["find", "insert", "update"],
    "identities": ["find", "insert"],
    "identityOwners": ["find", "insert"],
    "messages": ["find", "insert"],
    "statuses": ["find"],
    "templates": ["find"],
    "visitors": ["find", "insert", "update"]
  },
  "widget-api": {
    "applications": ["find"],
    "audit": ["insert"],
    "chats": ["find", "insert", "update"],
    "files": ["find", "insert", "remove"],
    "idempotency": ["find", "insert", "update"],
    "identities": ["find", "insert"],
    "identityOwners": ["find", "insert"],
    "messages": ["find", "insert", "remove", "update"],
    "receipts": ["find", "insert", "update"],
    "visitors": ["find", "insert", "update"]
  },
  "processor": {
    "applications": ["find"],
    "audit": ["insert"],
    "botActions": ["find", "insert", "update"],
    "botCalls": ["insert"],
    "botUsage": ["find", "insert", "update"],
    "bots": ["find"],
    "chats": ["find", "insert", "update"],
    "companies": ["find"],
    "documents": ["find", "insert", "update"],
    "identities": ["find", "insert"],
    "identityOwners": ["find", "insert"],
    "knowledgeSettings": ["find", "update"],
    "messages": ["find", "insert", "remove", "update"],
    "modelConnections": ["find"],
    "passages": ["find", "insert", "remove", "update"],
    "receipts": ["find", "insert", "update"],
    "statuses": ["find", "insert", "update"],
    "streams": ["find", "insert", "update"],
    "templates": ["find"],
    "visitors": ["find", "insert", "update"],
    "webhookDeliveries": ["find", "insert", "update"],
    "webhookEndpoints": ["find", "update"]
  },
  "panel": {
    "accessTokens": ["find", "insert", "remove", "update"],
    "applications": ["find", "insert", "update"],
    "audit": ["find", "insert"],
    "botActions": ["remove"],
    "botCalls": ["find", "remove"],
    "botUsage": ["find", "remove"],
    "bots": ["find", "insert", "update"],
    "chats": ["find", "remove", "update"],
    "companies": ["find", "insert", "update"],
    "documents": ["find", "insert", "remove", "update"],
    "files": ["find", "insert", "remove"],
    "idempotency": ["find", "insert", "update"],
    "identities": ["remove"],
    "identityOwners": ["find", "remove"],
    "knowledgeSettings": ["find", "insert", "update"],
    "messages": ["find", "insert", "remove", "update"],
    "modelConnections": ["find", "insert", "remove", "update"],
    "passages": ["find", "insert", "remove"],
    "receipts": ["find", "remove"],
    "sessions": ["find", "insert", "remove", "update"],
    "statuses": ["find", "remove"],
    "templates": ["find", "insert", "update"],
    "users": ["find", "insert", "remove", "update"],
    "visitors": ["find", "remove", "update"],
    "webhookDeliveries": ["find", "insert", "remove", "update"],
    "webhookEndpoints": ["find", "insert", "remove", "update"]
  }
};
const database = db.getSiblingDB('parley');
function password(user) {
  const name = 'MONGODB_' + user.toUpperCase().replace('-', '_') + '_PASSWORD';
  if (!process.env[name]) throw new Error(name + ' is not set');
  return process.env[name];
}
for (const [user, collections] of Object.entries(roles)) {
  const pwd = password(user);
  const privileges = Object.entries(collections).map(([collection, actions]) => ({resource: {db: 'parley', collection}, actions}));
  database.createRole({role: user, privileges, roles: []});
  database.createUser({user, pwd, roles: [{role: user, db: 'parley'}]});
}
database.createUser({user: 'operator', pwd: password('operator'), roles: [{role: 'readWrite', db: 'parley'}]});
