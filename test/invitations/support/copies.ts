import { makeDeviceKey, type Sealer } from "../../../src/shared/credentials.ts";
import { newApplicationId } from "../../../src/shared/identifiers.ts";
import { type TestApplication, testSealer } from "../../support/application.ts";
import { homeDatabase, testHome } from "../../support/home.ts";

const COPY_APPLICATION = `
  INSERT INTO application (id, name, first_number, last_number, reuse_after_seconds, sealed_device_key, sealing_version,
    webhook_url, webhook_held_at, created_at)
  SELECT ?2, name, ?3, ?4, ?5, ?6, sealing_version, webhook_url, webhook_held_at, created_at
  FROM application WHERE id = ?1`;

const COPY_SECRETS = `
  INSERT INTO application_secret (id, application_id, role, digest, sealed, sealing_version, created_at)
  SELECT id || ?2, ?2, role, digest, sealed, sealing_version, created_at FROM application_secret WHERE application_id = ?1`;

const COPY_KEYS = `
  INSERT INTO signing_key (id, application_id, kid, public_key, sealed, sealing_version, created_at)
  SELECT abs(random()) >> 11, ?2, kid, public_key, sealed, sealing_version, created_at FROM signing_key WHERE application_id = ?1`;

const COPY_POSITION = `
  INSERT INTO position (application_id, sequence, entry, fresh, last_position, last_change, last_signing_key, epoch,
    hour_started_at, hour_used)
  VALUES (?1, 0, 'start', '[]', 0, 0, 0, 'start', 0, 0)`;

/**
 * Makes many small applications like one that is there: its secret authenticates them too, and they cannot sign. New
 * credentials for each would take most of the time of a test that needs hundreds.
 */
export function copier(
  original: TestApplication,
): (size: number, reuseAfterSeconds: number) => Promise<TestApplication> {
  // Far from every range of this file.
  let nextNumber = 7_000_000_000;
  let sealer: Promise<Sealer> | undefined;
  return async (size, reuseAfterSeconds) => {
    const id = newApplicationId(testHome());
    const firstNumber = nextNumber;
    const lastNumber = firstNumber + size - 1;
    nextNumber += size;
    sealer ??= testSealer();
    const deviceKey = await makeDeviceKey(await sealer, id);
    await homeDatabase().batch([
      homeDatabase()
        .prepare(COPY_APPLICATION)
        .bind(original.id, id, firstNumber, lastNumber, reuseAfterSeconds, deviceKey),
      homeDatabase().prepare(COPY_SECRETS).bind(original.id, id),
      homeDatabase().prepare(COPY_KEYS).bind(original.id, id),
      homeDatabase().prepare(COPY_POSITION).bind(id),
    ]);
    return { id, secret: original.secret, firstNumber, lastNumber };
  };
}
