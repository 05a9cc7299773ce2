import CConsoleAssets
import HTTPServer

/// The console's files.
enum ConsoleAsset {
    /// By the URL's path: "/", "/console/main.js".
    static let all: [String: EmbeddedFile] = {
        var all: [String: EmbeddedFile] = [:]
        for index in 0..<console_asset_count() {
            let asset = console_asset(index)
            guard let name = asset.name, let start = asset.bytes else { continue }
            let file = String(cString: name)
            all[file == "index.html" ? "/" : "/console/\(file)"] = EmbeddedFile(
                file, UnsafeRawBufferPointer(start: start, count: asset.length))
        }
        return all
    }()
}
