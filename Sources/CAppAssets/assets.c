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
static const unsigned char nim_js[] = {
#embed "../AppServer/Assets/nim.js"
};
static const unsigned char rong_js[] = {
#embed "../AppServer/Assets/rong.js"
};
static const unsigned char demo_css[] = {
#embed "../AppServer/Assets/demo.css"
};
static const unsigned char demo_js[] = {
#embed "../AppServer/Assets/demo.js"
};
static const unsigned char machine_html[] = {
#embed "../AppServer/Assets/machine.html"
};
static const unsigned char machine_js[] = {
#embed "../AppServer/Assets/machine.js"
};
static const unsigned char class_html[] = {
#embed "../AppServer/Assets/class.html"
};
static const unsigned char class_css[] = {
#embed "../AppServer/Assets/class.css"
};
static const unsigned char class_js[] = {
#embed "../AppServer/Assets/class.js"
};
static const unsigned char board_html[] = {
#embed "../AppServer/Assets/board.html"
};
static const unsigned char board_css[] = {
#embed "../AppServer/Assets/board.css"
};
static const unsigned char board_js[] = {
#embed "../AppServer/Assets/board.js"
};
static const unsigned char live_player_js[] = {
#embed "../Console/Assets/live-player.js"
};
static const unsigned char whep_js[] = {
#embed "../Console/Assets/whep.js"
};

#define ASSET(bytes, name) {name, bytes, sizeof bytes}
static const struct app_asset assets[] = {
    ASSET(mesh_html, "mesh.html"),
    ASSET(mesh_css, "mesh.css"),
    ASSET(mesh_js, "mesh.js"),
    ASSET(nim_js, "nim.js"),
    ASSET(rong_js, "rong.js"),
    ASSET(demo_css, "demo.css"),
    ASSET(demo_js, "demo.js"),
    ASSET(machine_html, "machine.html"),
    ASSET(machine_js, "machine.js"),
    ASSET(class_html, "class.html"),
    ASSET(class_css, "class.css"),
    ASSET(class_js, "class.js"),
    ASSET(board_html, "board.html"),
    ASSET(board_css, "board.css"),
    ASSET(board_js, "board.js"),
    ASSET(live_player_js, "live-player.js"),
    ASSET(whep_js, "whep.js"),
};

size_t app_asset_count(void) { return sizeof assets / sizeof *assets; }

struct app_asset app_asset(size_t index) {
    struct app_asset none = {0};
    return index < app_asset_count() ? assets[index] : none;
}
