import CAppAssets
import HTTPServer
import HTTPTypes
import Hummingbird
import NIOCore
import ServerConfiguration

/// The page for trying the mesh: `GET /mesh`, `/mesh/`, and its files beside it. Plain files that are part of the program; no request to
/// anywhere else. Any thread.
final class MeshPage: Sendable {
    private let isEnabled: Bool

    init(_ services: AppServices) { self.isEnabled = services.config.apps.meshPage }

    private static let files: [String: (type: String, bytes: ByteBuffer)] = {
        var files: [String: (type: String, bytes: ByteBuffer)] = [:]
        for index in 0..<app_asset_count() {
            let asset = app_asset(index)
            guard let name = asset.name, let start = asset.bytes else { continue }
            let file = String(cString: name)
            let type =
                file.hasSuffix(".html")
                ? "text/html; charset=utf-8" : file.hasSuffix(".css") ? "text/css; charset=utf-8" : "text/javascript; charset=utf-8"
            files["/mesh/\(file == "mesh.html" ? "" : file)"] = (
                type, ByteBuffer(bytes: UnsafeRawBufferPointer(start: start, count: asset.length))
            )
        }
        files["/mesh"] = files["/mesh/"]
        return files
    }()

    static func has(_ path: some StringProtocol) -> Bool { self.files[String(path)] != nil }

    /// Nil when the path is none of the page's.
    func respond(to request: Request) -> Response? {
        guard self.isEnabled, request.method == .get || request.method == .head, let file = Self.files[request.uri.path] else { return nil }
        var headers: HTTPFields = [.contentType: file.type, .contentSecurityPolicy: Self.policy]
        for (name, value) in [
            ("X-Frame-Options", "DENY"), ("Referrer-Policy", "no-referrer"), ("Permissions-Policy", "camera=(self), microphone=(self)"),
        ] {
            if let name = HTTPField.Name(name) { headers[name] = value }
        }
        return Response(status: .ok, headers: headers, body: .init(byteBuffer: request.method == .head ? ByteBuffer() : file.bytes))
    }

    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; media-src 'self' blob: mediastream:;"
        + " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}
