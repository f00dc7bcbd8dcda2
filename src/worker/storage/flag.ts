import * as z from "zod";

export const flag = z.number().transform((value) => value === 1);
