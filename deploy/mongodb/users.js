// Runs once, in a new data directory, as the root user: creates a database user for each service that uses it.
const database = db.getSiblingDB('parley');
for (const user of ['client-api', 'widget-api', 'processor', 'panel', 'operator']) {
  const pwd = process.env['MONGODB_' + user.toUpperCase().replace('-', '_') + '_PASSWORD'];
  if (!pwd) throw new Error('there is no password for ' + user);
  database.createUser({user, pwd, roles: [{role: 'readWrite', db: 'parley'}]});
}
