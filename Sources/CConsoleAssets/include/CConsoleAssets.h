#ifndef EARSHOT_CONSOLE_ASSETS_H
#define EARSHOT_CONSOLE_ASSETS_H

#include <stddef.h>

/// A file of the console. `name` and `bytes` live as long as the program.
struct console_asset {
    const char *name;
    const unsigned char *bytes;
    size_t length;
};

size_t console_asset_count(void);
/// The file at `index`, which is below the count; otherwise one whose members are null.
struct console_asset console_asset(size_t index);

#endif
