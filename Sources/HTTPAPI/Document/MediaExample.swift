import Support

/// Examples of answers that are not JSON, for the OpenAPI document. For binary types it has only a description.
enum MediaExample {
    /// `json`: the example of the same answer as JSON, if the call can answer in JSON too.
    static func text(_ type: String, json: JSONValue?) -> String {
        switch type {
        case MetricsText.mediaType:
            "# HELP earshot_streams_live Streams with a publisher now, talk mixes included.\n# TYPE earshot_streams_live gauge\nearshot_streams_live 3\n"
        case CSV.mediaType: self.table(json?["data"]?["list"])
        case "image/svg+xml": "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 61 61\"><path d=\"M4 4h7v1h-7z\"/></svg>"
        case "image/jpeg": "(a JPEG picture)"
        case "image/png": "(a PNG picture)"
        case "video/mp4": "(an MP4 file)"
        default: "(bytes)"
        }
    }

    private static func table(_ list: JSONValue?) -> String {
        guard case .array(let items)? = list, case .object(let members)? = items.first else { return "" }
        return String(decoding: CSV.text(members.map(\.name), items), as: UTF8.self)
    }
}
