import CAppAssets
import HTTPServer
import HTTPTypes
import Hummingbird
import NIOCore
import ServerConfiguration
import Support

/// The apps' pages and the scripts for their clients: files embedded in the program, without requests to other servers. Any thread.
///
/// | path | |
/// |---|---|
/// | `/mesh`, `/mesh/`, `/mesh/…` | the page for trying the mesh; `apps.mesh.page` |
/// | `/demo/class`, `/demo/machine`, `/demo/…` | the pages for trying classes and machines; `apps.demo` |
/// | `/board/{id}` | a class's whiteboard |
/// | `/sdk/rong.js`, `/sdk/nim.js` | in place of the vendors' scripts |
final class AppPages: HTTPPart {
    private enum Group { case mesh, demo, board, sdk }

    private let config: ServerConfig.Apps
    private let settings: Live<ServerConfig>

    init(_ services: AppServices) {
        self.config = services.config.apps
        self.settings = services.config
    }

    private static let assets: [String: EmbeddedFile] = {
        var files: [String: EmbeddedFile] = [:]
        for index in 0..<app_asset_count() {
            let asset = app_asset(index)
            guard let name = asset.name, let start = asset.bytes else { continue }
            let file = String(cString: name)
            files[file] = EmbeddedFile(file, UnsafeRawBufferPointer(start: start, count: asset.length))
        }
        return files
    }()

    /// The file at a path, and its group. Each group has its own files, except for those that all pages share.
    private static func file(_ path: String) -> (group: Group, file: EmbeddedFile)? {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
        guard let folder = parts.first, parts.count <= 2 else { return nil }
        let name = parts.count == 2 ? parts[1] : ""
        let (group, asset): (Group, String) =
            switch folder {
            case "mesh": (.mesh, name.isEmpty ? "mesh.html" : name)
            case "demo": (.demo, name == "class" || name == "machine" ? "\(name).html" : name)
            case "board": (.board, name.contains(".") ? name : "board.html")
            case "sdk": (.sdk, name)
            default: (.sdk, "")
            }
        guard self.isOf(group, asset), let file = self.assets[asset] else { return nil }
        return (group, file)
    }

    private static func isOf(_ group: Group, _ asset: String) -> Bool {
        switch group {
        case .mesh: asset.hasPrefix("mesh.")
        case .sdk: asset == "rong.js" || asset == "nim.js"
        case .board: asset.hasPrefix("board.")
        case .demo: !asset.hasPrefix("mesh.") && !asset.hasPrefix("board.") && asset != "rong.js" && asset != "nim.js"
        }
    }

    /// Whether a GET of this path under `/mesh` is for the page.
    static func hasMeshFile(_ path: some StringProtocol) -> Bool { self.file(String(path))?.group == .mesh }

    func door(_ request: Request) -> Door? { self.page(request) == nil ? nil : .appPage }

    /// Nil when the path belongs to no page, or to one that is switched off.
    private func page(_ request: Request) -> (group: Group, file: EmbeddedFile)? {
        guard request.method == .get || request.method == .head, let (group, file) = Self.file(request.uri.path) else { return nil }
        guard group != .mesh || self.config.meshPage, group != .demo || self.config.demo else { return nil }
        return (group, file)
    }

    func respond(to request: Request, _ context: APIContext) async -> Response {
        guard let (group, file) = self.page(request) else { return APIError.notFound("page", request.uri.path).response(context) }
        var headers: HTTPFields = [.contentSecurityPolicy: self.policy(group)]
        for (name, value) in [
            ("Referrer-Policy", "no-referrer"), ("Permissions-Policy", "camera=(self), microphone=(self)"),
            // All pages that may call this server may load its scripts.
            ("Cross-Origin-Resource-Policy", group == .sdk || group == .board ? "cross-origin" : "same-origin"),
        ] {
            if let name = HTTPField.Name(name) { headers[name] = value }
        }
        return file.response(to: request, headers)
    }

    /// Class pages embed whiteboards, here or at the origins that `http.allowOrigin` names. No other page may be embedded.
    private func policy(_ group: Group) -> String {
        // `*` would allow every origin.
        let origins = self.settings.http.allowOrigin.filter { $0 != "*" }
        let ancestors = group == .board ? (["'self'"] + origins).joined(separator: " ") : "'none'"
        return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self';"
            + " media-src 'self' blob: mediastream:; base-uri 'none'; form-action 'none'; frame-ancestors \(ancestors)"
    }
}
