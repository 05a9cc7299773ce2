#ifndef EARSHOT_APP_ASSETS_H
#define EARSHOT_APP_ASSETS_H

#include <stddef.h>

/// A file of the apps' pages. `name` and `bytes` live as long as the program.
struct app_asset {
    const char *name;
    const unsigned char *bytes;
    size_t length;
};

size_t app_asset_count(void);
/// The file at `index`, which is below the count; otherwise one whose members are null.
struct app_asset app_asset(size_t index);

#endif
