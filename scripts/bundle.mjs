// Owns the second half of `npm run build`: the programs of dist/bin/ from the modules that the compiler wrote.
import { joinPrograms } from './setup/programs.mjs'

await joinPrograms()
