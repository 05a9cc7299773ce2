// The console's files, compiled into the program as they stand in Sources/Console/Assets.
#pragma clang diagnostic ignored "-Wc23-extensions"
#include "CConsoleAssets.h"

static const unsigned char index_html[] = {
#embed "../Console/Assets/index.html"
};
static const unsigned char style_css[] = {
#embed "../Console/Assets/style.css"
};
static const unsigned char icon_svg[] = {
#embed "../Console/Assets/icon.svg"
};
static const unsigned char main_js[] = {
#embed "../Console/Assets/main.js"
};
static const unsigned char access_js[] = {
#embed "../Console/Assets/access.js"
};
static const unsigned char alarms_js[] = {
#embed "../Console/Assets/alarms.js"
};
static const unsigned char api_js[] = {
#embed "../Console/Assets/api.js"
};
static const unsigned char chart_js[] = {
#embed "../Console/Assets/chart.js"
};
static const unsigned char chinese_js[] = {
#embed "../Console/Assets/chinese.js"
};
static const unsigned char codes_js[] = {
#embed "../Console/Assets/codes.js"
};
static const unsigned char dom_js[] = {
#embed "../Console/Assets/dom.js"
};
static const unsigned char feed_js[] = {
#embed "../Console/Assets/feed.js"
};
static const unsigned char figures_js[] = {
#embed "../Console/Assets/figures.js"
};
static const unsigned char format_js[] = {
#embed "../Console/Assets/format.js"
};
static const unsigned char gatherings_js[] = {
#embed "../Console/Assets/gatherings.js"
};
static const unsigned char i18n_js[] = {
#embed "../Console/Assets/i18n.js"
};
static const unsigned char listen_js[] = {
#embed "../Console/Assets/listen.js"
};
static const unsigned char live_player_js[] = {
#embed "../Console/Assets/live-player.js"
};
static const unsigned char login_js[] = {
#embed "../Console/Assets/login.js"
};
static const unsigned char metrics_js[] = {
#embed "../Console/Assets/metrics.js"
};
static const unsigned char reasons_js[] = {
#embed "../Console/Assets/reasons.js"
};
static const unsigned char refusals_js[] = {
#embed "../Console/Assets/refusals.js"
};
static const unsigned char rights_js[] = {
#embed "../Console/Assets/rights.js"
};
static const unsigned char room_js[] = {
#embed "../Console/Assets/room.js"
};
static const unsigned char room_sides_js[] = {
#embed "../Console/Assets/room-sides.js"
};
static const unsigned char room_stream_js[] = {
#embed "../Console/Assets/room-stream.js"
};
static const unsigned char server_js[] = {
#embed "../Console/Assets/server.js"
};
static const unsigned char settings_js[] = {
#embed "../Console/Assets/settings.js"
};
static const unsigned char signed_player_js[] = {
#embed "../Console/Assets/signed-player.js"
};
static const unsigned char ui_js[] = {
#embed "../Console/Assets/ui.js"
};
static const unsigned char viewers_js[] = {
#embed "../Console/Assets/viewers.js"
};
static const unsigned char wall_js[] = {
#embed "../Console/Assets/wall.js"
};
static const unsigned char webhooks_js[] = {
#embed "../Console/Assets/webhooks.js"
};
static const unsigned char whep_js[] = {
#embed "../Console/Assets/whep.js"
};
static const unsigned char words_js[] = {
#embed "../Console/Assets/words.js"
};

#define ASSET(bytes, name) {name, bytes, sizeof bytes}
static const struct console_asset assets[] = {
    ASSET(index_html, "index.html"),
    ASSET(style_css, "style.css"),
    ASSET(icon_svg, "icon.svg"),
    ASSET(main_js, "main.js"),
    ASSET(access_js, "access.js"),
    ASSET(alarms_js, "alarms.js"),
    ASSET(api_js, "api.js"),
    ASSET(chart_js, "chart.js"),
    ASSET(chinese_js, "chinese.js"),
    ASSET(codes_js, "codes.js"),
    ASSET(dom_js, "dom.js"),
    ASSET(feed_js, "feed.js"),
    ASSET(figures_js, "figures.js"),
    ASSET(format_js, "format.js"),
    ASSET(gatherings_js, "gatherings.js"),
    ASSET(i18n_js, "i18n.js"),
    ASSET(listen_js, "listen.js"),
    ASSET(live_player_js, "live-player.js"),
    ASSET(login_js, "login.js"),
    ASSET(metrics_js, "metrics.js"),
    ASSET(reasons_js, "reasons.js"),
    ASSET(refusals_js, "refusals.js"),
    ASSET(rights_js, "rights.js"),
    ASSET(room_js, "room.js"),
    ASSET(room_sides_js, "room-sides.js"),
    ASSET(room_stream_js, "room-stream.js"),
    ASSET(server_js, "server.js"),
    ASSET(settings_js, "settings.js"),
    ASSET(signed_player_js, "signed-player.js"),
    ASSET(ui_js, "ui.js"),
    ASSET(viewers_js, "viewers.js"),
    ASSET(wall_js, "wall.js"),
    ASSET(webhooks_js, "webhooks.js"),
    ASSET(whep_js, "whep.js"),
    ASSET(words_js, "words.js"),
};

size_t console_asset_count(void) { return sizeof assets / sizeof *assets; }

struct console_asset console_asset(size_t index) {
    struct console_asset none = {0};
    return index < console_asset_count() ? assets[index] : none;
}
