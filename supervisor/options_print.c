// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * --help, the sample configuration and docs/CONFIG.md, all from the table of options.
 */
#include <string.h>

#include "options.h"
#include "options_table.h"

static bool in_section(const struct mote_option *option, unsigned int section)
{
	return !strcmp(option->section, mote_section_table[section].name);
}

static void help_options(FILE *out, unsigned int section)
{
	char def[256], allowed[256];

	fprintf(out, "\n[%s]: %s\n", mote_section_table[section].name,
		mote_section_table[section].help);
	for (unsigned int i = 0; i < MOTE_OPTS; i++) {
		const struct mote_option *option = &mote_option_table[i];

		if (!in_section(option, section))
			continue;
		mote_option_default(option, def, sizeof(def));
		mote_option_allowed(option, allowed, sizeof(allowed));
		fprintf(out, "  %s = %-*s %s; %s\n", option->key, 25 - (int)strlen(option->key),
			def, option->help, allowed);
	}
}

void mote_options_help(FILE *out)
{
	fputs("moted: host and process telemetry as MessagePack frames on a unix socket\n"
	      "\n"
	      "usage: moted [--config FILE] [--mode MODE] [--probes SET] [--engine ENGINE]\n"
	      "             [--socket PATH]\n"
	      "       moted --check [--json] | --version | --help\n"
	      "\n"
	      "  --config FILE    configuration file (" MOTE_OPTIONS_FILE " if it exists)\n"
	      "  --mode MODE      [mote] mode\n"
	      "  --probes SET     [mote] probes\n"
	      "  --engine ENGINE  [mote] engine\n"
	      "  --socket PATH    [socket] path\n"
	      "  --check          say what this host allows, what mote chooses and why\n"
	      "  --json           with --check: as JSON\n"
	      "  --version        print the version\n"
	      "  --help           print this\n"
	      "\n"
	      "The command line wins over the file. Keys of the file and their defaults:\n",
	      out);
	for (unsigned int i = 0; i < mote_section_count; i++)
		help_options(out, i);
}

static void sample_options(FILE *out, unsigned int section)
{
	char def[256], allowed[256];

	fprintf(out, "\n# %s\n[%s]\n", mote_section_table[section].help,
		mote_section_table[section].name);
	for (unsigned int i = 0; i < MOTE_OPTS; i++) {
		const struct mote_option *option = &mote_option_table[i];

		if (!in_section(option, section))
			continue;
		mote_option_default(option, def, sizeof(def));
		mote_option_allowed(option, allowed, sizeof(allowed));
		fprintf(out, "\n# %s\n# %s\n#%s =%s%s\n", option->help, allowed, option->key,
			*def ? " " : "", def);
	}
}

void mote_options_sample(FILE *out)
{
	fputs("# mote's configuration, made by `make docs` from supervisor/options.def.\n"
	      "# It is read from " MOTE_OPTIONS_FILE ", or from where --config says.\n"
	      "# Every key is shown with its default; take the # away to set it. A key that is not\n"
	      "# known, a value that is not allowed, or two values for one key stop mote from\n"
	      "# starting, with one line that names the file, the line and what is allowed.\n",
	      out);
	for (unsigned int i = 0; i < mote_section_count; i++)
		sample_options(out, i);
}

static void markdown_options(FILE *out, unsigned int section)
{
	char def[256], allowed[256];

	fprintf(out, "\n## [%s]\n\n%s.\n\n| key | default | allowed | |\n|---|---|---|---|\n",
		mote_section_table[section].name, mote_section_table[section].help);
	for (unsigned int i = 0; i < MOTE_OPTS; i++) {
		const struct mote_option *option = &mote_option_table[i];

		if (!in_section(option, section))
			continue;
		mote_option_default(option, def, sizeof(def));
		mote_option_allowed(option, allowed, sizeof(allowed));
		fprintf(out, "| `%s` | %s%s%s | %s | %s |\n", option->key, *def ? "`" : "", def,
			*def ? "`" : "", allowed, option->help);
	}
}

void mote_options_markdown(FILE *out)
{
	fputs("<!-- made by `make docs` from supervisor/options.def: change it there -->\n"
	      "# Configuration\n"
	      "\n"
	      "`moted` reads `" MOTE_OPTIONS_FILE "` if it exists, or the file that `--config` "
	      "names; the command line\nwins over the file. The format is INI: `[section]`, "
	      "`key = value`, comments after `#` at the start of a\nline or after ` ;`. "
	      "`dist/mote.conf` has every key, commented out.\n"
	      "\n"
	      "A section or key that is not known, a value that is not allowed, a key given twice "
	      "or a file that cannot\nbe read end `moted` with exit code 2 and one line:\n"
	      "\n"
	      "    /etc/mote/mote.conf:7: [interval] cpu: '5'; allowed: 10ms to 1h, in ms, s, m or "
	      "h\n"
	      "\n"
	      "Beside the range of each key:\n"
	      "\n"
	      "- every time is a multiple of `[loop] base`;\n"
	      "- `[tables] events` is a power of two;\n"
	      "- `[socket] arena` is at least four times `frame`, and at least `queue`;\n"
	      "- `[socket] queue` is at least twice `frame`;\n"
	      "- paths of `[filters]` begin with `/`.\n",
	      out);
	for (unsigned int i = 0; i < mote_section_count; i++)
		markdown_options(out, i);
}
