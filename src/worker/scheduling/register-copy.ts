import type { Database } from "../storage/database.ts";
import { deleteRegistration, listRegistrations, putRegistrations } from "../storage/number-ranges.ts";
import type { RegisterCopy } from "./number-register.ts";

/** D1's copy of the register, in home 1. */
export const registerCopy = (db: Database): RegisterCopy => ({
  list: () => listRegistrations(db),
  put: (registrations) => putRegistrations(db, registrations),
  delete: (id) => deleteRegistration(db, id),
});
