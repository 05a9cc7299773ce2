import CConsoleAssets
import Crypto
import NIOCore
import Support

/// The console's files, which are part of the program. A value.
struct ConsoleAsset: Sendable {
    let type: String
    let bytes: ByteBuffer
    /// The entity tag of the file's content (RFC 9110 §8.8.3).
    let etag: String

    /// By path: "/", "/console/main.js".
    static let all: [String: ConsoleAsset] = {
        var all: [String: ConsoleAsset] = [:]
        for index in 0..<console_asset_count() {
            let asset = console_asset(index)
            guard let name = asset.name, let start = asset.bytes else { continue }
            let bytes = ByteBuffer(bytes: UnsafeRawBufferPointer(start: start, count: asset.length))
            let file = String(cString: name)
            let hash = SecretText.hex(SHA256.hash(data: Array(bytes.readableBytesView)).prefix(12))
            all[file == "index.html" ? "/" : "/console/\(file)"] = ConsoleAsset(
                type: Self.type(of: file), bytes: bytes, etag: "\"\(hash)\"")
        }
        return all
    }()

    private static func type(of file: String) -> String {
        switch file.split(separator: ".").last {
        case "html": "text/html; charset=utf-8"
        case "js": "text/javascript; charset=utf-8"
        case "css": "text/css; charset=utf-8"
        case "svg": "image/svg+xml"
        default: "application/octet-stream"
        }
    }
}
