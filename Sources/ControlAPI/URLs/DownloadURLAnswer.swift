import Access
import HTTPAPI
import HTTPServer
import Packaging
import Streaming
import Support

/// A signed link to a file.
struct DownloadURLAnswer: Sendable {
    let url: String
    /// Milliseconds since 1970.
    let expiresAt: Int64

    static let expiresIn = Input(
        "expiresIn", .whole(FileLinks.lifetimeSeconds), "Seconds for which the link opens the file.", fallback: FileLinks.usualSeconds)

    /// `path` is the file's, below `/api/v1`.
    init(_ path: String, _ call: APICall) throws {
        let seconds = WallClock.seconds + (try call.value(Self.expiresIn))
        self.url = try call.publicAddress().http + call.core.links.signed(APIService.prefix + path, expiresAt: seconds)
        self.expiresAt = seconds * 1_000
    }

    static let outputType = OutputType<DownloadURLAnswer>.object(
        "DownloadUrl",
        [
            .field("url", .uri, "The file, for GET and HEAD without a token. Contains a credential.", \.url),
            .field("expiresAt", .instant, "The link opens the file until this time.", \.expiresAt),
        ])
}

extension APICall {
    /// Opens a file of this server for its download; nil when there is none. `limit`: as far as one that is being written may be read.
    static func file(
        _ file: String, in folder: RecordingFolder, limit: Int64? = nil, id: String, type: String, isShown: Bool = false
    ) async throws -> FileDownload? {
        let name = file.split(separator: "/").dropFirst().joined(separator: "-")
        let path = folder.absolute(file)
        let (mayOpen, download) = await DiskWork.run {
            let mayOpen = OpenDescriptors.mayOpen(1)
            return (mayOpen, mayOpen ? FileDownload(path: path, limit: limit, id: id, name: name, type: type, isShown: isShown) : nil)
        }
        if !mayOpen { throw APIError.unavailable("No file can be opened now: \(OpenDescriptors.advice).") }
        return download
    }
}
