// Creates a database user for each service that uses MongoDB. It runs once, as the root user, when the data directory is created.
const database = db.getSiblingDB('parley');
for (const user of ['client-api', 'widget-api', 'processor', 'panel', 'operator']) {
  const pwd = process.env['MONGODB_' + user.toUpperCase().replace('-', '_') + '_PASSWORD'];
  if (!pwd) throw new Error('MONGODB_' + user.toUpperCase().replace('-', '_') + '_PASSWORD is not set');
  database.createUser({user, pwd, roles: [{role: 'readWrite', db: 'parley'}]});
}
