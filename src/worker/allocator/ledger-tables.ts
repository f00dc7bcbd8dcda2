/**
 * Whether a lease is unconfirmed: nobody knows whether D1 has its number. `confirmed` is 0 for no, 1 for yes, and 2 for "as
 * soon as `progress` has reached its ID". A new lease is a 2, so a group of leases is confirmed by one row, whatever its
 * size, and not by a row for each. Before `progress` passes a lease that is not confirmed, that one becomes a 0.
 */
export const IS_UNCONFIRMED =
  "(lease.confirmed = 0 OR lease.confirmed = 2 AND lease.id > (SELECT confirmed_through FROM progress))";

/**
 * Creates the tables of an application's object and adds columns that are missing. Objects live for years, so this is only
 * ever added to.
 */
export function createTables(sql: SqlStorage): void {
  sql.exec(`
    CREATE TABLE IF NOT EXISTS permutation_key (id INTEGER PRIMARY KEY CHECK (id = 1), key BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS segment (first INTEGER PRIMARY KEY, size INTEGER NOT NULL, used INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS lease (
      id INTEGER PRIMARY KEY,
      holder TEXT NOT NULL UNIQUE,
      number INTEGER NOT NULL,
      leased_at INTEGER NOT NULL,
      confirmed INTEGER NOT NULL
    );
    CREATE TABLE IF NOT EXISTS reclaim (id INTEGER PRIMARY KEY CHECK (id = 1), scanned_through INTEGER NOT NULL);
    INSERT OR IGNORE INTO reclaim (id, scanned_through) VALUES (1, 0);
    CREATE TABLE IF NOT EXISTS free (id INTEGER PRIMARY KEY, number INTEGER NOT NULL UNIQUE, freed_at INTEGER NOT NULL);
    CREATE INDEX IF NOT EXISTS free_longest ON free (freed_at, id);
    CREATE TABLE IF NOT EXISTS ready (
      slot INTEGER PRIMARY KEY,
      number INTEGER NOT NULL UNIQUE,
      freed_at INTEGER NOT NULL
    );
    CREATE TABLE IF NOT EXISTS beyond (number INTEGER PRIMARY KEY, freed_at INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS range_warning (last INTEGER PRIMARY KEY, percent INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS application (id INTEGER PRIMARY KEY CHECK (id = 1), application_id TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS high_water (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      position INTEGER NOT NULL,
      change INTEGER NOT NULL
    );
    CREATE TABLE IF NOT EXISTS progress (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      position INTEGER NOT NULL,
      change INTEGER NOT NULL,
      confirmed_through INTEGER NOT NULL
    );
    INSERT OR IGNORE INTO progress (id, position, change, confirmed_through) VALUES (1, 0, 0, 0);
    CREATE TABLE IF NOT EXISTS clock_sequence (id INTEGER PRIMARY KEY CHECK (id = 1), sequence INTEGER NOT NULL);
  `);
  // Holder key of the user device that claimed the lease's invitation.
  addColumn(sql, "claimed_by TEXT");
  // When the badge of the lease was revoked, in milliseconds.
  addColumn(sql, "revoked_at INTEGER");
}

function addColumn(sql: SqlStorage, column: string): void {
  const [name] = column.split(" ");
  const known = sql.exec("SELECT name FROM pragma_table_info('lease') WHERE name = ?", name).toArray();
  if (known.length === 0) sql.exec(`ALTER TABLE lease ADD COLUMN ${column}`);
}
