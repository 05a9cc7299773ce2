// The apps' pages, compiled into the program as they stand in Sources/AppServer/Assets.
#pragma clang diagnostic ignored "-Wc23-extensions"
#include "CAppAssets.h"

static const unsigned char mesh_html[] = {
#embed "../AppServer/Assets/mesh.html"
};
static const unsigned char mesh_css[] = {
#embed "../AppServer/Assets/mesh.css"
};
static const unsigned char mesh_js[] = {
#embed "../AppServer/Assets/mesh.js"
};

#define ASSET(bytes, name) {name, bytes, sizeof bytes}
static const struct app_asset assets[] = {
    ASSET(mesh_html, "mesh.html"),
    ASSET(mesh_css, "mesh.css"),
    ASSET(mesh_js, "mesh.js"),
};

size_t app_asset_count(void) { return sizeof assets / sizeof *assets; }

struct app_asset app_asset(size_t index) {
    struct app_asset none = {0};
    return index < app_asset_count() ? assets[index] : none;
}
