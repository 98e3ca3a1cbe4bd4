//! The table port on the table service.

use async_trait::async_trait;
use azure_core::Etag;
use azure_core::prelude::Continuable;
use azure_data_tables::clients::{EntityClient, TableClient};
use azure_data_tables::{Filter as ServiceFilter, IfMatchCondition, Top};
use futures::StreamExt as _;

use super::AzureStorage;
use super::blob::etag;
use super::errors::{Service, Translate};
use super::odata::{self, Row};
use super::retry::{SHORT, once, repeatable};
use crate::storage::{
    ETag, Entity, EntityKey, EntityPage, Error, Filter, Properties, Result, TableStore, check,
};

impl AzureStorage {
    fn table_client(&self, table: &str) -> Result<TableClient> {
        check::table(table)?;
        Ok(self.tables.table_client(table))
    }

    fn entity_client(&self, table: &str, key: &EntityKey) -> Result<EntityClient> {
        check::key(key)?;
        let partition = odata::quoted(&key.partition);
        let partition = self.table_client(table)?.partition_key_client(partition);
        Ok(partition.entity_client(odata::quoted(&key.row)))
    }

    fn about_table(&self, table: &str) -> Translate<'_> {
        self.translate(Service::Table, format!("table {table}"))
    }

    fn about_row(&self, table: &str, key: &EntityKey) -> Translate<'_> {
        let what = format!("row {}/{} of table {table}", key.partition, key.row);
        self.translate(Service::Table, what)
    }
}

fn row(key: &EntityKey, properties: &Properties) -> Result<Row> {
    check::properties(properties)?;
    Ok(odata::row(key, properties))
}

/// One request's rows, or the rows of as many as it takes to find any: a request may end at the
/// border of a partition with nothing found.
async fn first_page(
    client: &TableClient,
    expression: &str,
    limit: u32,
) -> azure_core::Result<(Vec<Row>, bool)> {
    let mut query = client.query().top(Top::new(limit));
    if !expression.is_empty() {
        query = query.filter(ServiceFilter::new(expression.to_owned()));
    }
    let mut pages = query.into_stream::<Row>();
    while let Some(page) = pages.next().await.transpose()? {
        let more = page.continuation().is_some();
        if !page.entities.is_empty() || !more {
            return Ok((page.entities, more));
        }
    }
    Ok((Vec::new(), false))
}

#[async_trait]
impl TableStore for AzureStorage {
    async fn create_table(&self, table: &str) -> Result<()> {
        let client = self.table_client(table)?;
        let about = self.about_table(table);
        match repeatable(&about, SHORT, || client.create().into_future()).await {
            Ok(_) | Err(Error::AlreadyExists { .. }) => Ok(()),
            // Whoever may not create tables may be given one that exists.
            Err(refused @ Error::Unauthorized { .. }) => {
                let found = self.query(table, &Filter::Everything, None, 1).await;
                found.map(drop).map_err(|_| refused)
            }
            Err(error) => Err(error),
        }
    }

    async fn insert(&self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag> {
        check::key(key)?;
        let client = self.table_client(table)?;
        let row = row(key, &properties)?;
        let about = self.about_row(table, key);
        // A repetition could find the first try's own row.
        let insert = || async { client.insert::<_, Row>(&row)?.into_future().await };
        let inserted = once(&about, SHORT, insert).await?;
        Ok(etag(inserted.etag.as_ref()))
    }

    async fn merge(
        &self,
        table: &str,
        key: &EntityKey,
        properties: Properties,
        expected: Option<&ETag>,
    ) -> Result<ETag> {
        let client = self.entity_client(table, key)?;
        let row = row(key, &properties)?;
        let about = self.about_row(table, key);
        let condition = expected.map_or(IfMatchCondition::Any, |etag| {
            IfMatchCondition::Etag(Etag::from(etag.0.clone()))
        });
        let merge = || async { client.merge(&row, condition.clone())?.into_future().await };
        let merged = match expected {
            None => repeatable(&about, SHORT, merge).await?,
            Some(_) => once(&about, SHORT, merge).await?,
        };
        Ok(etag(merged.etag.as_ref()))
    }

    async fn upsert(&self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag> {
        let client = self.entity_client(table, key)?;
        let row = row(key, &properties)?;
        let upsert = || async { client.insert_or_replace(&row)?.into_future().await };
        let written = repeatable(&self.about_row(table, key), SHORT, upsert).await?;
        Ok(etag(written.etag.as_ref()))
    }

    async fn get(&self, table: &str, key: &EntityKey) -> Result<Entity> {
        let client = self.entity_client(table, key)?;
        let about = self.about_row(table, key);
        let get = || client.get::<Row>().into_future();
        let found = repeatable(&about, SHORT, get).await?;
        Ok(Entity {
            key: key.clone(),
            properties: odata::properties(&found.entity),
            etag: etag(found.etag.as_ref()),
        })
    }

    async fn delete(&self, table: &str, key: &EntityKey) -> Result<()> {
        let client = self.entity_client(table, key)?;
        let delete = || client.delete().into_future();
        let deleted = repeatable(&self.about_row(table, key), SHORT, delete).await;
        deleted.map(drop)
    }

    async fn query(
        &self,
        table: &str,
        filter: &Filter,
        after: Option<&EntityKey>,
        limit: usize,
    ) -> Result<EntityPage> {
        check::page(limit)?;
        let client = self.table_client(table)?;
        let expression = odata::expression(filter, after);
        let top = u32::try_from(limit).unwrap_or(u32::MAX);
        let about = self.about_table(table);
        let page = || first_page(&client, &expression, top);
        let (rows, more) = repeatable(&about, SHORT, page).await?;
        let entities = rows.iter().filter_map(|row| {
            Some(Entity {
                key: odata::key(row)?,
                properties: odata::properties(row),
                etag: etag(row.get("odata.etag")?.as_str()?),
            })
        });
        let entities: Vec<_> = entities.collect();
        let next = more.then(|| entities.last().map(|entity| entity.key.clone()));
        let next = next.flatten();
        Ok(EntityPage { entities, next })
    }
}
